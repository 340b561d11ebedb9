"""Files into tables, each once: COPY INTO, stages, file formats and pipes."""

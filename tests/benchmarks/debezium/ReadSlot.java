import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.FileReader;
import java.util.Properties;
import java.util.concurrent.Executors;

/** Reads a slot until a number of row changes was seen, then ends: {@code ReadSlot PROPERTIES COUNT records|json}. */
public final class ReadSlot {
    private static final long BEGAN = Long.parseLong(System.getenv("BENCHMARK_BEGAN"));
    private static long wanted;
    private static long seen;
    private static long characters;
    private static double first = -1;

    public static void main(String[] given) throws Exception {
        Properties properties = new Properties();
        try (FileReader file = new FileReader(given[0])) {
            properties.load(file);
        }
        wanted = Long.parseLong(given[1]);
        DebeziumEngine<?> engine = given[2].equals("json") ? inJson(properties) : asRecords(properties);
        Executors.newSingleThreadExecutor().execute(engine);
    }

    private static DebeziumEngine<?> inJson(Properties properties) {
        return DebeziumEngine.create(Json.class).using(properties).using(ReadSlot::ended)
            .notifying((events, committer) -> {
                for (ChangeEvent<String, String> event : events) {
                    characters += event.value() == null ? 0 : event.value().length();
                    committer.markProcessed(event);
                }
                committer.markBatchFinished();
                count(events.size());
            }).build();
    }

    private static DebeziumEngine<?> asRecords(Properties properties) {
        return DebeziumEngine.create(Connect.class).using(properties).using(ReadSlot::ended)
            .notifying((events, committer) -> {
                for (var event : events) {
                    committer.markProcessed(event);
                }
                committer.markBatchFinished();
                count(events.size());
            }).build();
    }

    private static void count(int more) {
        if (first < 0) {
            first = seconds();
        }
        seen += more;
        if (seen >= wanted) {
            System.out.printf("{\"first\": %.3f, \"last\": %.3f, \"events\": %d, \"characters\": %d}%n", first, seconds(), seen, characters);
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }
    }

    private static void ended(boolean success, String message, Throwable error) {
        System.err.println("The engine ended by itself: " + message + " " + error);
        Runtime.getRuntime().halt(1);
    }

    private static double seconds() {
        return (System.currentTimeMillis() - BEGAN) / 1e3;
    }
}

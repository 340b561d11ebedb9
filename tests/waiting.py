"""What waits for `make test-all` though its file is in `make test`, because each makes a history of its own with Spark.

`RUN_NOW`: files of which `make test` runs only what is named, which touches all of the file's subject. `LATER`: single
tests (`test_name`), or one set of their parameters (`test_name[id]`), and the test that stands for each in `make test`;
none where there is no shorter proof, and then provider/docs/how-to/develop.md says why.
"""

from __future__ import annotations

__all__ = ["LATER", "REASON", "RUN_NOW"]

REASON = "a history of its own with Spark; another test stands for it"
RUN_NOW: dict[str, tuple[str, ...]] = {
    "tests/engine/change_streams/test_backfill.py": (
        "test_rows_and_records_together_are_the_table_whatever_is_captured_between",
    ),
    "tests/engine/change_streams/test_capture.py": (
        "test_only_watched_columns_make_updates",
        "test_a_key_that_stands_twice_in_a_transaction_is_an_error_and_nothing_is_written[inserted twice]",
        "test_a_schema_change_shows_from_its_commit_on",
    ),
    "tests/engine/change_streams/test_capture_numbers.py": (
        "test_partitions_split_after_two_hot_batches_and_children_get_what_comes_later",
    ),
    "tests/engine/change_streams/test_capture_once.py": (
        "test_a_second_attempt_answers_what_the_first_has_written",
        "test_two_captures_at_once_make_one_commit_and_answer_the_same",
        "test_a_watched_table_that_changed_is_an_error_before_anything_is_written",
    ),
    "tests/engine/change_streams/test_client_change_streams.py": (
        "test_a_stream_is_defined_captured_read_altered_suspended_and_dropped_in_sql",
        "test_the_catalog_says_what_was_named_and_what_was_set",
        "test_for_all_takes_up_a_table_that_came_later_from_its_first_row_on",
        "test_what_cannot_be_is_refused_in_sql",
        "test_a_function_of_a_notebook_gets_records_and_one_that_no_job_can_find_is_refused",
        "test_a_read_is_refused_in_python_before_a_row_is_read",
    ),
    "tests/engine/change_streams/test_discarded_batches.py": (
        "test_a_doubled_key_is_passed_by_a_restart_and_nothing_else_is_left_out",
        "test_a_table_that_vanishes_while_a_batch_is_open_is_named_and_altering_passes_it",
        "test_a_barrier_and_a_late_capture_at_once_leave_one_of_them",
    ),
    "tests/engine/change_streams/test_read_change_stream.py": (
        "test_a_partition_is_read_in_order_and_its_children_last",
        "test_a_merged_partition_comes_from_each_parent_with_all_parents",
        "test_all_partitions_are_read_in_one_query_and_children_after_their_parents",
        "test_both_ends_of_a_question_are_inclusive",
        "test_what_is_not_captured_yet_is_not_answered",
        "test_heartbeats_stand_where_no_record_was_and_not_too_often",
        "test_a_bad_question_is_refused_before_the_log_is_looked_at",
        "test_a_bad_token_is_refused_by_what_the_log_says",
        "test_a_stream_without_a_log_was_dropped_or_never_captured",
        "test_before_the_first_batch_the_partitions_of_the_store_are_read",
        "test_only_the_files_of_the_partition_and_the_time_are_read",
    ),
    "tests/engine/change_streams/test_read_functions.py": (
        "test_sql_and_python_answer_the_same",
        "test_who_follows_heartbeats_is_not_ahead_whatever_the_clocks_say",
        "test_before_the_first_capture_the_partitions_of_the_store_are_read",
    ),
    "tests/engine/change_streams/test_reassembly.py": (
        "test_a_transaction_is_put_together_from_all_partitions_in_the_order_of_its_records",
        "test_transactions_are_read_from_all_partitions_below_the_low_watermark",
    ),
    "tests/engine/change_streams/test_sinks.py": (
        "test_records_are_appended_once_with_the_fields_that_the_target_has",
        "test_changes_are_applied_in_order_and_an_update_only_changes_what_it_modified",
        "test_a_replacement_in_one_transaction_ends_with_the_row_that_was_inserted",
        "test_values_of_all_types_come_back_as_they_were",
        "test_what_does_not_fit_is_refused_before_anything_is_written",
        "test_a_number_that_was_used_with_other_bounds_is_refused",
        "test_a_function_gets_the_records_and_an_identity_that_is_the_same_at_each_attempt",
        "test_a_function_that_is_not_there_is_refused_before_a_chunk_is_read",
        "test_a_failing_chunk_does_not_stop_its_siblings_but_the_later_ones_of_its_token",
        "test_the_error_of_a_merge_comes_back_by_its_name",
        "test_a_target_that_is_not_there_is_named",
    ),
    "tests/engine/change_streams/test_expire.py": (
        "test_only_batches_that_are_over_as_a_whole_leave",
        "test_a_run_that_was_broken_off_between_mark_and_removal_is_finished_by_the_next",
        "test_what_an_earlier_release_trimmed_has_expired_as_well",
    ),
    "tests/engine/replication/test_lost_targets.py": (
        "test_a_target_that_is_gone_is_made_anew_by_a_backfill",
        "test_a_place_with_files_of_others_is_no_target",
    ),
    "tests/engine/replication/test_restored_tables.py": (
        "test_a_number_that_another_range_was_written_under_is_not_taken_for_written",
        "test_of_an_event_log_that_lost_batches_nothing_is_applied",
    ),
    "tests/engine/replication/test_expire_events.py": (
        "test_what_the_target_has_goes_and_the_rest_is_applied_as_if_nothing_had_gone",
        "test_an_event_is_needed_from_the_place_that_is_named_on",
    ),
    "tests/engine/test_client_views.py": (
        "test_changes_of_either_table_arrive_once_and_both_places_move",
        "test_a_stream_is_described_as_one_on_a_view_r130",
        "test_a_clone_begins_where_the_stream_stands_and_an_advance_skips_r11",
        "test_a_recreated_view_is_another_one_r83",
        "test_a_recreated_base_table_breaks_the_stream_and_says_which_r83",
        "test_what_the_source_system_refuses_is_refused_at_creation_and_taken_beyond_it_r70",
    ),
    "tests/engine/test_corrupt_tables.py": (
        "test_a_commit_that_is_missing_makes_the_stream_stale",
        "test_damage_that_only_spark_finds_fails_the_job_by_name_and_writes_nothing",
    ),
    "tests/engine/test_every_change.py": (
        "test_each_commit_shows_what_it_did",
        "test_pages_are_whole_commits_without_gap_or_overlap",
    ),
    "tests/engine/test_every_change_streams.py": (),  # test_every_change.py stands for them
    "tests/engine/test_feed_candidate.py": ("test_the_feed_gives_the_rows_and_ids_that_data_files_give[true]",),
    "tests/engine/test_lake_reads_what_delta_writes.py": (
        "test_the_state_behind_a_checkpoint_is_the_state_of_the_whole_log",
        "test_deletion_vectors_are_those_that_delta_wrote",
    ),
    "tests/engine/test_large_vectors.py": (
        "test_the_standard_changes",
        "test_nothing_is_left_of_the_vectors",
    ),
    "tests/engine/test_names_schemas_and_paths.py": (
        "test_an_added_column_is_null_in_old_images",
        "test_a_renamed_column_has_both_images_under_the_new_name",
    ),
    "tests/engine/test_odd_histories.py": (
        "test_a_compaction_that_is_restored_brings_old_rows_not_new_ones",
        "test_counting_says_as_many_changes_as_there_are",
    ),
    "tests/engine/test_quarantine_once.py": (
        "test_a_retry_finishes_and_tells_the_same_number",
        "test_constraints_that_change_between_the_statements_neither_lose_nor_double_a_row"
        "[ALTER TABLE {target} ADD CONSTRAINT late CHECK (id <> 2)]",
    ),
    "tests/engine/test_retention.py": (
        "test_R88_after_consumption_retention_falls_back",
        "test_R84_what_an_outside_vacuum_took_is_said_at_the_next_look_and_never_without_need",
    ),
    "tests/engine/test_schema_changes.py": (
        "test_fields_added_at_any_depth_are_null_in_older_rows",
        "test_other_types_are_refused_before_a_row_is_read",
    ),
    "tests/engine/test_streams_by_key.py": (
        "test_updates_deletes_and_merges_show_what_they_did_and_optimize_nothing",
        "test_a_key_that_stands_twice_on_a_side_is_named_with_table_version_and_key",
        "test_a_consumption_delivers_once_and_a_clone_keeps_the_keys",
    ),
    "tests/engine/test_table_features.py": (
        "test_append_only_tables_are_read",
        "test_every_feature_that_delta_knows_has_been_thought_of",
    ),
    "tests/engine/test_table_features_of_logs.py": ("test_a_shallow_clone_is_read_in_the_files_of_its_origin",),
    "tests/engine/test_windows_that_cannot_be_read.py": (
        "test_files_that_vacuum_took_are_named",
        "test_a_table_recreated_under_its_name_is_another_table",
    ),
    "tests/engine/views/test_beyond_snowflake.py": ("test_without_the_flag_it_is_refused_with_the_place",),
    "tests/engine/views/test_view_catalog.py": (
        "test_names_mean_what_they_meant_where_the_view_was_made",
        "test_what_is_no_view_or_not_there_is_said",
    ),
    "tests/engine/views/test_view_changes.py": ("test_a_base_table_made_anew_ends_the_stream",),
    "tests/engine/views/test_view_cost.py": (
        "test_files_without_partners_are_not_read",
        "test_a_plan_needs_no_spark",
    ),
}
HISTORIES = "tests/properties/test_histories.py::test_windows_equal_the_difference_of_snapshots"
QUARANTINED = (
    "tests/properties/test_quarantine.py"
    "::test_each_row_is_in_the_target_or_in_quarantine_and_the_target_keeps_its_constraints"
)
PARTITION_TREES = (
    "tests/guarantees/test_random_partition_trees.py::test_each_record_once_for_each_group_and_keys_in_order"
)
LATER: dict[str, dict[str, str | None]] = {
    "tests/airflow/test_catalog_tables.py": {
        "test_R90_operators_follow_a_managed_table_that_is_renamed_between_windows": (
            "tests/engine/test_identity_of_sources.py"
            "::test_R90_no_change_is_lost_or_delivered_twice_when_a_managed_table_is_renamed_between_windows"
        ),
    },
    "tests/airflow/test_streams_at_risk.py": {
        "test_a_stream_that_fails_again_and_again_is_at_risk_if_that_is_asked": (
            "test_the_notifier_tells_of_failing_and_stuck_streams_in_words"
        ),
    },
    "tests/airflow/test_change_stream_fan_out.py": {
        "test_the_tree_of_these_tests_has_a_split_and_a_merge": PARTITION_TREES,
        "test_a_mirror_is_right_after_waves_over_a_split_and_a_merge": (
            "tests/airflow/test_examples.py::test_a_mirror_begins_with_the_rows_and_goes_on_with_the_records"
        ),
        "test_tokens_share_a_task_and_more_than_airflow_maps_over_is_never_planned": None,
        "test_a_failing_partition_blocks_its_descendants_alone_and_is_taken_up_by_the_next_run": (
            "tests/control/test_waves_behaviour.py"
            "::test_a_failed_partition_waits_for_another_run_and_holds_back_only_its_descendants"
        ),
    },
    "tests/airflow/test_connect.py": {
        "test_a_job_killed_after_its_write_finds_it_on_the_retry": (
            "tests/guarantees/test_killed_anywhere_each_change_once.py"
            "::test_a_retry_after_a_kill_delivers_each_change_once"
        ),
        "test_a_server_that_stops_answering_leaves_the_job_counted_as_running": None,
    },
    "tests/airflow/test_monitor_hangs.py": {
        "test_a_store_that_hangs_takes_nothing_of_airflows_with_it[stopped]": (
            "test_a_store_that_hangs_takes_nothing_of_airflows_with_it"
        ),
    },
    "tests/airflow/test_quarantine.py": {"test_a_dry_run_names_the_quarantine_and_makes_none": None},
    "tests/airflow/test_replicate_group.py": {
        "test_backfill_then_changes_then_a_pause_while_the_source_is_written_to": (
            "tests/airflow/test_examples.py::test_a_shops_database_is_replicated_held_recovered_and_let_go"
        ),
    },
    "tests/airflow/test_secrets.py": {
        "test_a_supervised_task_tells_no_secret_to_its_log_or_to_airflow[careless-printed]": (
            "test_a_supervised_task_tells_no_secret_to_its_log_or_to_airflow"
        ),
    },
    "tests/engine/change_streams/test_read_captured.py": {
        "test_a_captured_history_is_read_partition_by_partition_until_its_end": (
            "tests/guarantees/test_all_records_are_the_change_history.py::test_every_group_gets_the_whole_history_once"
        ),
    },
    "tests/engine/replication/test_backfill_object.py": {
        "test_a_copy_and_its_events_are_the_source_however_it_is_written_meanwhile": (
            "tests/guarantees/test_replication_random.py::test_targets_are_their_source_whatever_was_written_meanwhile"
        ),
    },
    "tests/engine/replication/test_capture_events.py": {
        "test_a_source_that_goes_away_in_the_middle_loses_nothing[1073741824]": (
            "test_a_source_that_goes_away_in_the_middle_loses_nothing"
        ),
    },
    "tests/engine/replication/test_apply_events.py": {
        "test_a_history_is_in_the_target_once_and_found_again": (
            "tests/properties/test_apply_histories.py::test_applied_events_leave_the_rows_that_the_source_had"
        ),
        "test_a_mirror_without_a_key_stops_before_what_it_cannot_follow[UPDATE-a-only one half.*Backfill the object]": (
            "test_a_mirror_without_a_key_stops_before_what_it_cannot_follow"
        ),
        "test_what_only_a_backfill_can_tell_needs_one[None-it has no key any more]": (
            "test_what_only_a_backfill_can_tell_needs_one"
        ),
        "test_what_only_a_backfill_can_tell_needs_one[change0-column n changed its type from integer to string]": (
            "test_what_only_a_backfill_can_tell_needs_one"
        ),
        "test_a_value_that_is_overwritten_in_time_harms_nobody": None,
    },
    "tests/engine/test_append_only_rows.py": {
        "test_restored_rows_are_not_inserted_again": HISTORIES,
        "test_compaction_never_delivers_again": HISTORIES,
    },
    "tests/engine/test_external_tables.py": {
        "test_a_file_that_is_no_longer_what_the_refresh_saw_is_an_error_until_the_next_refresh[longer]": (
            "test_a_file_that_is_no_longer_what_the_refresh_saw_is_an_error_until_the_next_refresh"
        ),
        "test_every_format_is_read_and_its_columns_are_found[avro-_avro-options3]": (
            "test_every_format_is_read_and_its_columns_are_found"
        ),
    },
    "tests/engine/test_identity_of_sources.py": {
        "test_R32_rows_that_the_origin_had_rewritten_get_numbers_of_their_own_in_a_clone_and_keep_them": (
            "test_R32_R93_a_clone_has_a_history_of_its_own_and_keeps_the_numbers_of_its_rows"
        ),
        "test_R82_a_stream_goes_on_on_the_table_that_replaced_its_own[outside]": (
            "test_R82_a_stream_goes_on_on_the_table_that_replaced_its_own"
        ),
    },
    "tests/engine/test_quarantine.py": {
        "test_each_kind_of_constraint_sorts_the_rows": QUARANTINED,
        "test_a_merge_keeps_what_it_has_under_a_bad_key_and_later_good_changes_apply": QUARANTINED,
        "test_spaces_at_the_end_of_a_char_key_make_no_other_key": None,
        "test_all_rows_may_be_bad_and_where_none_is_the_quarantine_gets_an_empty_commit": QUARANTINED,
        "test_of_every_change_the_last_image_of_a_key_counts": QUARANTINED,
        "test_a_merge_asks_a_constraint_with_what_the_row_has_and_does_not_get": QUARANTINED,
        "test_nested_columns_and_texts_that_are_too_long_or_say_no_number": None,
    },
    "tests/engine/test_sql_statements.py": {
        f"test_what_a_function_may_not_do_is_said[{which}]": "test_what_a_function_may_not_do_is_said"
        for which in (
            "write_elsewhere-StatementRefused-not a declared target",
            "write_from_another_session-StatementRefused-another Spark session",
            "go_on_after_a_failure-TargetDoesNotFit-it has no column unknown",
        )
    },
    "tests/engine/test_standard_rows.py": {
        "test_equal_content_is_no_change": HISTORIES,
        "test_many_rows_are_netted_like_few": HISTORIES,
        "test_overwrite_is_delete_and_insert_also_of_equal_rows": HISTORIES,
        "test_restore_brings_rows_back_under_their_ids": HISTORIES,
        "test_a_row_that_changes_before_and_after_optimize_is_one_pair": HISTORIES,
        "test_n_commits_and_their_parts_tell_the_same": HISTORIES,
    },
    "tests/engine/test_stream_sql.py": {
        "test_R13_R14_R15_R16_a_query_reads_and_a_write_advances": (
            "tests/engine/test_client_streams.py::test_R13_R14_R15_a_write_takes_the_whole_window_whatever_its_filter"
        ),
        "test_R17_R20_R21_a_transaction_sees_the_same_rows_and_its_own_writes_come_next_time": (
            "tests/engine/test_client_streams.py"
            "::test_R20_R21_R25_a_transaction_sees_one_window_whatever_is_committed_meanwhile"
        ),
        **{
            f"test_scripts_of_the_source_system_can_be_pasted[{script}]": (
                "test_scripts_of_the_source_system_can_be_pasted"
            )
            for script in ("basic_stream", "changes", "append_only_and_standard", "show_initial_rows")
        },
    },
    "tests/properties/test_captured_histories.py": {
        "test_whole_rows_are_those_of_the_snapshot": "test_records_lead_from_each_version_to_the_next",
    },
}

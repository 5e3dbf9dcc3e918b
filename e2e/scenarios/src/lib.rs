//! What must be true on every world, one sentence each: scenarios of the agents, written once and played on every kind of world.
//!
//! `tests/embedded.rs` plays them on embedded planes, `e2e/real` on real kcp, kube-apiserver and etcd.
#![allow(clippy::large_futures)] // whole flows are one future each, and there are few of them

mod addresses;
mod any_json;
mod applying;
mod backends;
mod broken;
mod chart;
mod collateral;
mod compat;
mod compat_orders;
mod compat_publish;
mod compat_related;
mod corpus;
mod dashboard;
mod dev;
mod doctor;
mod drift;
mod ends;
mod events;
mod examples;
mod explaining;
mod exports;
mod failures;
mod fleet;
mod gate;
mod holders;
mod hostile;
mod import;
mod init;
mod judges;
mod kbind;
mod keepers;
mod konnectors;
mod kubectl;
mod leaders;
mod lifecycle;
mod limits;
mod mesh;
mod moves;
mod objects;
mod outages;
mod owner;
mod ownership;
mod pause;
mod process;
mod providers;
mod publish;
mod related;
mod related_ends;
mod related_kinds;
mod related_marks;
mod renewals;
mod restarts;
mod restores;
mod rights;
mod rules;
mod shapes;
mod startup;
mod switching;
mod versions;
mod withdrawals;

use std::sync::Arc;

use carrick_e2e_stage::world::World;
use futures::future::LocalBoxFuture;

/// One sentence and how to see that it is true.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The sentence, below its theme.
    pub name: &'static str,
    /// Whether nothing else may happen in its world meanwhile.
    pub alone: bool,
    /// Whether it plays on planes only.
    pub planes: bool,
    /// Plays it on a world.
    pub play: fn(Arc<dyn World>) -> LocalBoxFuture<'static, anyhow::Result<()>>,
}

impl Scenario {
    /// What it cannot be played without and is not here.
    pub fn lacks(&self) -> Option<&'static str> {
        if self.name.starts_with("corpus::") { carrick_e2e_stage::corpus::lacking() } else { None }
    }
}

/// Themes whose scenarios each play alone in a world: they cut the cables that all agents use, turn back the time of servers, or their many
/// kinds keep an API server busy.
const ALONE: [&str; 5] = ["outages", "addresses", "corpus", "owner", "restores"];

/// Themes whose scenarios move workspaces between shards.
const PLANES: [&str; 1] = ["moves"];

macro_rules! scenarios {
    ($($theme:ident: $($name:ident)*;)*) => {
        vec![$($(Scenario {
            name: concat!(stringify!($theme), "::", stringify!($name)),
            alone: ALONE.contains(&stringify!($theme)),
            planes: PLANES.contains(&stringify!($theme)),
            play: |world| Box::pin($theme::$name(world)),
        },)*)*]
    };
}

/// All of them.
pub fn all() -> Vec<Scenario> {
    scenarios! {
        publish:
            a_crd_is_published_under_its_well_known_name_and_can_be_bound
            more_kinds_than_a_connection_carries_watches_are_published_and_served
            a_changed_crd_yields_a_new_schema_beside_the_old_one
            a_schema_of_another_kcp_is_not_exported
            a_crd_with_two_columns_of_one_name_is_published
            kinds_that_come_with_kubernetes_are_published_without_a_crd;
        exports:
            an_export_that_others_wrote_in_the_newest_version_is_published_into_and_left_as_it_was
            beside_a_kind_from_a_virtual_workspace_others_are_published
            what_readers_of_the_older_version_see_stays_the_same
            a_refused_write_of_the_export_is_told_on_what_it_was_for_and_by_the_doctor
            consumers_who_accept_no_events_are_sent_none_until_they_do;
        gate:
            a_schema_that_harms_orders_is_held_back_until_it_is_approved
            behind_a_manual_gate_nothing_changes_unasked
            a_crash_at_any_visible_step_of_the_gate_is_made_good
            after_a_rollback_copies_keep_what_kcp_does_not_show_any_more
            what_the_reference_agent_exports_meanwhile_is_where_this_one_goes_on;
        versions:
            a_version_that_the_service_cluster_does_not_have_is_served_by_rules
            consumers_use_the_version_they_like_and_kcp_asks_the_agent
            copies_follow_when_the_service_cluster_stores_the_newer_version
            what_conversions_lose_and_mistakes_in_them_are_told
            an_order_that_cannot_be_converted_is_named_and_harms_no_other;
        hostile:
            only_what_belongs_to_her_copy_is_handed_to_a_consumer
            what_consumers_choose_is_said_in_amber
            no_order_leads_into_namespaces_of_the_cluster_or_of_the_agent
            related_objects_stay_out_of_reserved_namespaces
            credentials_of_the_cluster_do_not_travel
            an_order_that_names_too_many_objects_is_refused_and_holds_up_nobody
            an_order_with_too_many_related_objects_is_refused_and_holds_up_nobody
            orders_beyond_the_memory_of_a_workspace_wait_and_hold_up_nobody
            related_objects_beyond_the_memory_of_a_workspace_are_refused_and_hold_up_nobody;
        limits:
            orders_say_what_they_wait_for_and_on_whom_their_deletion_waits
            above_the_limit_an_order_waits_until_another_one_goes
            of_many_orders_at_once_the_oldest_get_the_places
            what_breaks_a_rule_is_refused_at_once_or_not_placed
            a_mistake_in_a_rule_is_shown_with_its_place_and_harms_nobody_else
            what_the_service_cluster_refuses_is_told_on_the_order;
        import:
            an_object_that_exists_gets_an_order_and_nothing_is_written_to_its_content
            what_its_order_would_change_is_named_and_refused_unless_it_is_accepted
            a_linked_object_without_an_order_is_left_alone_until_the_import_goes_on_or_is_taken_back
            an_import_is_taken_back_and_the_object_stays
            what_belongs_to_somebody_or_fits_nowhere_is_not_imported
            the_objects_of_twenty_tenants_are_imported_at_once
            a_published_resource_imports_what_its_provider_labels_once_and_nothing_that_a_consumer_labels
            an_object_whose_consumer_has_not_bound_the_export_is_reported_and_imported_once_she_has;
        withdrawals:
            a_kind_leaves_on_its_date_and_takes_nothing_with_it
            a_date_that_comes_while_no_agent_runs_is_kept_later;
        kubectl:
            kubectl_says_on_a_service_cluster_what_was_recorded
            kubectl_says_in_a_workspace_what_was_recorded;
        objects:
            an_order_is_placed_on_the_service_cluster
            orders_of_the_same_name_in_two_workspaces_stay_apart
            a_changed_spec_arrives
            the_status_returns
            a_change_made_only_on_the_service_cluster_survives
            deleting_an_order_leaves_nothing_behind
            a_copy_that_its_operator_holds_holds_the_order
            a_copy_is_deleted_as_its_owner_wishes;
        any_json:
            an_order_that_nests_deep_is_placed_and_follows_changes
            an_order_that_nests_too_deep_is_told_by_name_and_harms_nobody
            numbers_are_carried_to_the_last_digit
            a_change_of_more_fields_than_a_patch_may_have_arrives_and_so_do_later_ones
            texts_that_yaml_does_not_take_arrive_with_either_memory;
        restarts:
            a_crash_between_any_two_steps_of_the_user_is_made_good
            a_crash_at_any_visible_step_of_the_agent_is_made_good
            what_happens_while_the_agent_is_down_is_caught_up_with
            a_restart_at_rest_writes_nothing;
        restores:
            after_kcp_went_back_nothing_is_undone_and_everything_is_named
            whoever_follows_carries_out_what_kcp_has
            an_agent_that_runs_meanwhile_holds_what_went_back
            after_the_service_cluster_went_back_orders_are_carried_out_again
            an_agent_that_runs_meanwhile_carries_out_orders_again;
        konnectors:
            an_api_is_bound_and_its_objects_travel_both_ways
            unbinding_takes_copies_away_before_the_api_goes
            what_happens_while_a_konnector_is_down_is_caught_up_with;
        kbind:
            a_workspace_is_a_provider_by_its_discovery_alone_and_a_mesh_finds_the_lease
            unbinding_takes_copies_along_and_leaves_what_the_provider_had_before
            related_objects_travel_either_way_and_go_with_their_binding
            labels_that_vanish_from_the_provider_delete_nothing
            a_mesh_finds_every_cluster_connected_by_its_own_lease_and_what_it_pastes_binds_nothing_of_kcp;
        backends:
            workspaces_that_bind_the_export_of_a_backend_are_served_each_on_its_own
            what_an_account_has_already_shows_on_its_workload_cluster
            a_plain_cluster_offers_its_service_to_workspaces;
        switching:
            what_kube_bind_leaves_is_taken_over_and_nothing_is_lost_or_made_anew
            what_ours_leave_is_what_kube_bind_knows_and_nothing_of_it_holds_anything_up;
        related:
            a_secret_of_the_service_reaches_the_consumer_and_follows_changes
            a_config_map_of_the_consumer_reaches_the_service_and_goes_with_either
            a_secret_that_gets_its_label_late_is_found;
        related_ends:
            a_secret_that_two_orders_share_goes_with_the_last_of_them
            what_an_order_does_not_name_any_more_is_let_go
            an_entry_that_cannot_be_read_keeps_its_copies
            a_secret_that_the_service_deletes_goes_from_the_consumer_too
            secrets_that_come_to_match_a_selector_travel_at_once
            an_order_whose_copy_is_gone_still_lets_its_secret_go;
        related_kinds:
            cluster_scoped_objects_travel_in_both_directions
            what_orders_of_two_kinds_share_goes_with_the_last_of_them
            every_entry_of_one_kind_follows_its_own_objects
            what_the_agent_may_not_watch_it_looks_at_now_and_then
            the_status_of_a_kind_of_kubernetes_returns;
        related_marks:
            what_is_absent_for_a_moment_keeps_its_copy
            marked_copies_of_which_nothing_is_remembered_are_taken_back
            what_another_agent_held_and_made_is_let_go_and_taken_back
            an_order_ends_although_its_claims_are_not_accepted
            an_order_ends_although_marked_copies_may_not_be_listed;
        mesh:
            an_order_is_available_once_its_secret_has_arrived_with_the_port_of_a_service
            an_order_that_goes_says_so_and_lists_nothing_any_more
            what_a_consumer_names_is_looked_at_only_if_it_belongs_to_her_copy
            what_a_schema_has_no_room_for_is_told_and_not_written
            a_platforms_api_is_served_by_a_kind_of_the_provider
            a_mapping_that_does_not_work_harms_nobody_else
            a_changed_mapping_waits_for_an_approval
            a_first_draft_is_written_from_the_live_export
            a_provider_writes_steps_and_the_doctor_says_when_the_platforms_api_has_changed
            an_agent_keeps_what_says_which_orders_come
            what_others_accept_is_left_alone
            consumers_behind_a_broker_count_as_themselves
            generic_apis_map_onto_kinds_of_operators_as_in_the_corpus
            a_certificate_moves_from_one_issuer_to_another_and_is_never_without
            a_database_moves_after_its_content_was_copied
            all_orders_of_a_provider_move_although_agents_are_killed_again_and_again;
        drift:
            a_changed_field_is_reported_with_who_changed_it
            what_a_server_makes_of_values_is_no_drift
            a_field_is_set_back_three_times_and_then_contested
            the_same_where_copies_are_applied
            whoever_ignores_drift_pays_nothing_for_it
            a_paused_copy_is_not_set_back
            copies_of_a_consumers_secrets_are_watched_too;
        pause:
            what_a_pause_names_rests_and_its_end_brings_the_newest_state
            a_pause_ends_when_its_time_has_come
            a_deletion_waits_for_the_end_of_a_pause_of_everything
            consumers_pause_their_orders_where_the_provider_lets_them;
        rules:
            a_projected_kind_is_ordered_under_its_new_names
            only_orders_that_match_the_filter_are_served
            a_copy_names_the_workspace_of_its_order_if_asked_to;
        lifecycle:
            switched_off_it_lets_orders_go_and_switched_on_it_takes_them_up_again
            deleted_it_lets_orders_go_together_with_what_they_hold
            deleted_while_no_agent_ran_it_lets_orders_go_all_the_same
            not_valid_when_the_agent_starts_it_holds_nobody_who_wants_to_go
            handed_to_another_agent_it_leaves_orders_to_that_one
            published_under_another_name_it_lets_go_of_the_old_one;
        failures:
            names_that_are_taken_or_not_valid_are_told_until_better_rules_come
            two_originals_for_one_copy_are_told_and_the_first_stays
            an_order_that_could_not_be_placed_is_let_go_like_any_other
            a_rule_that_fails_on_one_order_harms_only_that_one;
        shapes:
            cluster_scoped_orders_are_served
            a_status_returns_also_where_it_is_no_subresource
            an_older_version_travels_as_itself
            labels_of_namespaces_decide_where_orders_are_served;
        rights:
            the_documented_rights_are_enough_for_an_order_with_a_secret
            what_a_role_lacks_is_said_before_the_first_order_and_work_goes_on_when_it_is_granted;
        broken:
            a_broken_published_resource_harms_only_itself_and_says_so
            rules_that_are_not_valid_are_not_offered_to_consumers
            rules_that_name_what_cannot_be_there_say_so
            a_repaired_published_resource_works_without_a_restart
            of_two_for_one_resource_the_first_is_published_and_the_other_says_so;
        startup:
            an_agent_that_starts_before_its_slice_recovers_by_itself
            an_agent_that_starts_before_its_crd_recovers_by_itself
            an_agent_that_is_told_only_its_export_finds_the_slice
            an_agent_follows_its_slice_to_another_export
            an_export_made_anew_gets_everything_again;
        outages:
            an_agent_that_starts_without_its_service_cluster_waits_for_it
            an_agent_that_starts_without_kcp_waits_for_it
            what_happens_while_the_service_cluster_is_lost_is_caught_up_with
            what_happens_while_kcp_is_lost_is_caught_up_with
            what_is_not_published_any_more_keeps_no_agent_from_being_ready
            work_goes_on_soon_after_a_long_outage_of_the_service_cluster
            work_goes_on_soon_after_a_long_outage_of_kcp
            work_begins_soon_after_kcp_comes
            work_begins_soon_after_the_service_cluster_comes
            a_broker_waits_no_longer_for_a_lost_service_cluster_than_the_provider_has_said
            the_first_change_after_a_restart_of_kcp_arrives_soon;
        owner:
            after_kcp_was_restored_a_running_agent_goes_on
            after_the_service_cluster_was_restored_a_running_agent_goes_on;
        moves:
            a_workspace_that_moves_to_a_shard_with_lower_versions_and_back_is_served_all_the_time
            many_workspaces_move_together_and_back_and_nothing_is_made_again
            a_controller_of_the_library_follows_workspaces_that_move;
        renewals:
            a_token_file_that_was_replaced_is_used_soon
            a_right_to_write_that_was_granted_is_used_soon
            a_right_to_watch_that_was_granted_is_used_soon;
        leaders:
            of_two_agents_one_works_and_hands_over_at_once_when_it_stops
            the_lease_of_a_crashed_agent_is_taken_over_when_it_has_expired;
        keepers:
            an_agent_of_another_name_stays_out_and_takes_over_when_the_first_is_gone
            an_agent_that_is_told_to_takes_over_at_once
            agents_that_share_an_export_serve_their_own_kinds
            agents_of_two_exports_that_serve_one_published_resource_are_named;
        holders:
            a_renamed_agent_leaves_every_order_changeable_and_deletable
            an_order_made_from_a_copied_manifest_can_be_deleted
            what_an_agent_that_is_no_more_holds_is_told_and_let_go_by_a_command
            a_shared_secret_is_let_go_by_the_last_order_whatever_ends_them
            a_kind_that_was_withdrawn_does_not_hold_what_it_shared;
        ends:
            an_order_whose_kind_is_gone_from_the_service_cluster_can_be_deleted
            an_object_with_the_link_of_a_copy_holds_up_nobody
            a_secret_that_a_claim_hides_is_told_when_its_order_ends;
        applying:
            a_change_arrives_and_the_server_remembers_it
            it_can_be_switched_on_and_off_without_a_change_of_copies
            a_change_that_is_refused_is_explained_as_without_it
            related_objects_are_applied_too;
        collateral:
            what_others_have_on_the_service_cluster_stays_untouched
            a_place_taken_by_someone_else_is_left_to_them
            a_copy_that_lost_its_label_is_found_and_labelled_again;
        ownership:
            two_published_resources_of_one_kind_keep_to_their_own_copies
            a_cluster_scoped_kind_and_a_namespaced_one_keep_to_their_own_copies
            of_two_kinds_that_name_copies_alike_the_first_keeps_its_copy
            copies_without_the_newer_marks_are_taken_up_without_a_write
            a_copy_without_marks_that_two_sources_could_claim_is_left_to_neither_by_a_guess
            a_source_made_anew_does_not_inherit_the_copy_of_the_old_one
            a_source_made_anew_that_goes_leaves_the_copy_of_the_old_one
            a_secret_that_the_consumer_had_in_the_place_of_a_related_copy_stays_theirs
            a_config_map_that_the_operator_had_in_the_place_of_a_related_copy_stays_theirs
            what_equals_a_related_copy_stays_whose_it_is
            a_providers_policy_takes_no_secret_of_a_consumer
            entries_that_lead_in_a_circle_end_neither_the_consumers_secret_nor_the_operators
            entries_that_are_certain_to_lead_in_a_circle_are_refused
            an_order_that_another_order_needs_beside_it_keeps_its_copy
            a_copy_that_was_handed_over_loses_the_labels_of_the_order_before
            a_copy_that_lost_everything_that_names_its_order_is_known_by_its_uid
            a_copy_that_was_restored_from_a_backup_is_brought_up_to_date
            copies_of_a_version_that_recorded_no_ownership_stay_copies
            an_object_in_the_place_of_a_copy_is_refused_until_its_owner_gives_it_away
            rules_may_say_that_all_objects_in_the_place_of_copies_are_taken_over
            an_object_that_equals_the_copy_of_an_order_is_refused_like_any_other
            a_copy_that_loses_a_label_of_its_link_gets_it_back_and_changes_arrive
            an_order_whose_copy_lost_a_label_of_its_link_still_ends_with_its_copy
            an_order_whose_claims_were_never_accepted_can_be_deleted
            an_order_whose_claims_were_revoked_can_be_deleted
            an_order_that_the_filter_drops_is_let_go_without_any_claim
            an_order_is_released_without_any_claim
            claims_that_are_accepted_later_bring_the_secrets
            a_new_storage_version_loses_nothing
            a_new_storage_version_that_came_while_no_agent_ran_loses_nothing
            a_state_secret_deleted_under_a_running_agent_does_no_harm
            thirty_refused_updates_are_forgotten_when_a_good_one_comes
            an_order_of_700_kib_is_placed_and_updated
            three_related_config_maps_of_300_kib_are_placed_and_updated
            values_that_become_nulls_do_so_on_the_copy_too
            an_order_of_great_depth_is_placed_and_updated
            a_status_of_which_kcp_drops_a_field_is_written_once
            a_status_of_which_kcp_fills_in_a_field_is_written_once
            a_status_that_kcp_refuses_is_told_and_not_repeated
            a_status_with_nulls_and_lists_returns_as_it_is
            a_namespace_of_copies_that_somebody_deletes_comes_back_with_the_copies
            orders_deleted_while_the_namespace_of_their_copies_goes_come_to_an_end
            switched_off_after_copies_could_not_be_made_it_lets_orders_go
            without_the_right_to_patch_changes_arrive_by_update
            without_the_right_to_delete_it_says_so_before_the_first_order_and_goes_on_when_it_has_it
            what_is_the_primary_of_one_agent_is_held_for_it_whatever_another_one_does
            what_one_agent_needs_beside_an_order_is_held_for_it_whatever_its_own_agent_does;
        fleet:
            a_workspace_takes_part_from_its_first_binding_to_its_last
            an_export_that_claims_bindings_counts_only_its_own
            workspaces_wait_for_their_initializer_and_their_terminator;
        events:
            events_are_worded_as_those_of_the_reference_agent;
        explaining:
            what_would_be_done_is_told_without_doing_it
            what_others_have_changed_of_copies_is_told
            values_of_secrets_are_hidden_whatever_becomes_of_them;
        dev:
            a_cluster_lent_to_it_gets_its_files_and_is_left_as_it_was;
        dashboard:
            it_shows_counts_and_journeys_and_no_content
            what_fails_is_told_where_it_stopped_until_it_is_healed
            consumers_are_shown_with_their_bindings_and_claims
            an_order_is_compared_with_its_copy_and_no_secret_is_shown
            whoever_reaches_it_from_elsewhere_logs_in_with_a_right
            a_token_for_the_dashboard_alone_lets_in_and_one_for_somebody_else_does_not;
        doctor:
            a_healthy_agent_is_green
            wrong_ways_to_the_servers_are_told
            what_consumers_and_rules_lack_is_told
            missing_rights_are_told_and_the_fix_grants_them;
        judges:
            agent_and_doctor_say_the_same_of_rules;
        chart:
            what_it_renders_is_accepted
            its_rights_are_enough_for_the_agent
            an_agent_that_runs_keeps_its_name
            helm_installs_upgrades_and_removes_a_chart_with_crds;
        init:
            what_it_writes_offers_a_kind_with_the_rights_it_names
            one_command_sets_a_provider_up_and_takes_it_away_again;
        providers:
            the_agent_renews_its_token_for_kcp_before_it_ends_and_orders_keep_flowing
            a_token_that_cannot_be_renewed_is_told_with_the_way_out_and_hinders_nothing
            published_resources_of_ones_own_and_an_agent_elsewhere_until_the_agent_is_uninstalled
            a_live_agent_is_neither_pointed_elsewhere_nor_taken_away_by_a_mistyped_path;
        addresses:
            an_agent_works_by_another_address_where_that_of_the_slice_leads_nowhere;
        examples:
            one_operator_runs_databases_for_two_workspaces;
        process:
            the_released_binary_carries_an_order_through_kill_and_sigterm
            metrics_tell_the_way_of_an_order_but_nothing_of_its_content;
        corpus:
            kinds_of_public_operators_are_published_ordered_changed_and_deleted
            the_first_orders_that_init_writes_are_valid;
        compat_publish:
            the_export_claims_what_related_resources_need
            claims_that_were_there_before_stay
            schemas_of_others_stay_and_old_ones_are_replaced
            a_schema_outlives_what_published_it
            another_scope_makes_another_schema
            a_schema_is_never_changed
            a_schema_has_the_chosen_versions
            every_name_of_a_kind_can_be_projected
            a_kind_of_kubernetes_is_published
            a_metric_counts_published_resources
            a_related_resource_must_be_named_in_one_way;
        compat_orders:
            an_order_is_placed_where_its_rules_say
            an_order_is_placed_by_old_placeholders
            a_second_slice_in_the_workspace_does_as_well
            a_slice_in_another_workspace_does_as_well
            equal_orders_of_two_workspaces_make_two_copies
            a_local_change_stays_until_the_order_changes_it
            a_filter_lets_only_labelled_orders_through
            a_very_long_name_is_no_hindrance
            a_copy_tells_the_path_of_its_workspace
            a_kind_of_kubernetes_and_one_of_a_crd_share_an_export;
        compat_related:
            a_secret_is_found_in_each_way
            an_array_of_names_leads_to_several_secrets
            a_config_map_may_become_a_secret
            a_kind_of_the_same_export_may_be_related
            a_kind_of_another_export_may_be_related
            a_secret_of_the_service_goes_only_if_asked_to
            a_secret_of_the_consumer_is_held_while_it_is_copied
            the_status_of_a_related_object_travels_if_asked_to
            a_copy_goes_as_soon_as_its_original_of_the_service_goes
            a_copy_goes_also_if_order_and_original_go_at_once
            a_copy_goes_when_its_original_in_kcp_does_not_match_any_more
            a_copy_goes_as_its_order_says
            a_related_copy_goes_as_its_own_original_says;
    }
}

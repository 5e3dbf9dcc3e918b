//! What the agent shows under `/metrics`: one entry per metric. The reference page is made from this table.

use carrick_multicluster::metrics::Family;

macro_rules! families {
    ($($(#[$doc:meta])* $constant:ident = $kind:literal $name:literal $labels:tt $help:literal;)*) => {
        $($(#[$doc])* pub const $constant: Family = Family { name: $name, kind: $kind, labels: &$labels, help: $help };)*
        /// All of them, in the order in which they are shown.
        pub const ALL: &[Family] = &[$($constant),*];
    };
}

families! {
    /// PublishedResources.
    PUBLISHED_RESOURCES = "gauge" "sync_agent_published_resource" []
        "Number of PublishedResources currently managed by this syncagent instance.";
    /// Objects with a copy.
    SYNCED_OBJECTS = "gauge" "sync_agent_synced_objects" ["publishedresource"]
        "Copies on the service cluster, by PublishedResource.";
    /// Objects of consumers.
    SOURCE_OBJECTS = "gauge" "sync_agent_source_objects" ["publishedresource"]
        "Objects in consumers' workspaces, by PublishedResource.";
    /// Consumers.
    CONSUMERS = "gauge" "sync_agent_consumers" ["publishedresource"]
        "Consumers that have objects, by PublishedResource: workspaces, or whoever is behind a broker.";
    /// Objects whose last reconcile failed.
    FAILING_OBJECTS = "gauge" "sync_agent_failing_objects" ["publishedresource", "reason"]
        "Objects in consumers' workspaces that fail, wait or are refused now, by reason.";
    /// Objects that are paused.
    PAUSED_OBJECTS = "gauge" "sync_agent_paused_objects" ["publishedresource"]
        "Objects whose synchronization is paused now by the annotation syncagent.kcp.io/pause.";
    /// Copies that others have changed.
    DRIFTED_OBJECTS = "gauge" "sync_agent_drifted_objects" ["publishedresource"]
        "Copies with fields that somebody else has changed, where spec.drift asks for that.";
    /// Copies without a source.
    ORPHANS = "gauge" "sync_agent_orphaned_copies" ["publishedresource"]
        "Copies on the service cluster whose source does not exist.";
    /// One way from a change to its effect.
    HOP_SECONDS = "histogram" "sync_agent_hop_seconds" ["hop"]
        "How long each part of the way takes: source_to_copy from seeing a source to writing its copy, copy_to_status from writing the copy to seeing its first status, status_to_source from seeing a status to writing it to the source.";
    /// The oldest waiting change.
    LAG_SECONDS = "gauge" "sync_agent_lag_seconds" []
        "How long the oldest waiting change has waited.";
    /// What was done.
    STEPS = "counter" "sync_agent_steps_total" ["step"]
        "Steps executed, by what they do.";
    /// What went wrong.
    ERRORS = "counter" "sync_agent_errors_total" ["controller", "reason"]
        "Failures by reason: the server's own word where it refused, else the kind of failure.";
    /// The token for kcp.
    TOKEN_SECONDS = "gauge" "sync_agent_kcp_token_seconds" []
        "Seconds until the token for kcp ends, if the agent renews it; below 0 if it has ended.";
    /// Reconciles.
    RECONCILES = "counter" "controller_runtime_reconcile_total" ["controller", "result"]
        "Total number of reconciliations per controller.";
    /// Failed reconciles.
    RECONCILE_ERRORS = "counter" "controller_runtime_reconcile_errors_total" ["controller"]
        "Total number of reconciliation errors per controller.";
    /// Panics.
    RECONCILE_PANICS = "counter" "controller_runtime_reconcile_panics_total" ["controller"]
        "Total number of reconciliation panics per controller.";
    /// How long reconciles take.
    RECONCILE_SECONDS = "histogram" "controller_runtime_reconcile_time_seconds" ["controller"]
        "Length of time per reconciliation per controller.";
    /// How many may run.
    MAX_CONCURRENT = "gauge" "controller_runtime_max_concurrent_reconciles" ["controller"]
        "Maximum number of concurrent reconciles per controller; of the sync controller for each PublishedResource.";
    /// How many run.
    ACTIVE_WORKERS = "gauge" "controller_runtime_active_workers" ["controller"]
        "Number of currently used workers per controller.";
    /// How many wait.
    QUEUE_DEPTH = "gauge" "workqueue_depth" ["name", "controller"]
        "Current depth of the workqueue.";
    /// How many were added.
    QUEUE_ADDS = "counter" "workqueue_adds_total" ["name", "controller"]
        "Total number of adds handled by the workqueue.";
    /// How long they waited.
    QUEUE_SECONDS = "histogram" "workqueue_queue_duration_seconds" ["name", "controller"]
        "How long in seconds an item stays in the workqueue before being requested.";
    /// How long they took.
    WORK_SECONDS = "histogram" "workqueue_work_duration_seconds" ["name", "controller"]
        "How long in seconds processing an item from the workqueue takes.";
    /// How often they came again.
    QUEUE_RETRIES = "counter" "workqueue_retries_total" ["name", "controller"]
        "Total number of retries handled by the workqueue.";
    /// Requests.
    REQUESTS = "counter" "rest_client_requests_total" ["code", "method", "host"]
        "Number of HTTP requests, partitioned by status code, method, and host; <error> where there was no answer.";
    /// What requests waited.
    REQUEST_SECONDS = "counter" "sync_agent_request_seconds_total" ["method", "host"]
        "How long requests waited for the heads of their answers, together.";
    /// Servers that went back.
    REWINDS = "counter" "sync_agent_server_rewinds_total" ["host"]
        "How often a server has gone back in time: restored from a backup, or replaced.";
    /// Leadership.
    LEADER = "gauge" "leader_election_master_status" ["name"]
        "Whether this process holds the lease: 1 if so, 0 if another one does.";
    /// Processor time.
    PROCESSOR = "counter" "process_cpu_seconds_total" []
        "Total user and system CPU time spent in seconds.";
    /// Memory.
    MEMORY = "gauge" "process_resident_memory_bytes" []
        "Resident memory size in bytes.";
    /// Open files.
    OPEN_FILES = "gauge" "process_open_fds" []
        "Number of open file descriptors.";
    /// Threads.
    THREADS = "gauge" "process_threads" []
        "Number of threads.";
}

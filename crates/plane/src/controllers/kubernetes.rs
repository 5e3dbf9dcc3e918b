//! The service `default/kubernetes`, by which programs inside a cluster find its API server.

use serde_json::json;

use super::ensure::ensure;
use crate::api::Api;

/// Stores the service and its endpoint, as every API server does when it starts.
pub(super) fn publish(api: &Api, cluster: &str) {
    let (host, port) = api.url.trim_start_matches("https://").rsplit_once(':').unwrap_or_default();
    let port: u16 = port.parse().unwrap_or(443);
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            // The first address of the range that is reserved for services by default.
            "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
            "sessionAffinity": "None", "type": "ClusterIP",
        },
        "status": {"loadBalancer": {}},
    });
    ensure(api, cluster, "default", "services", service);
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{
            "addresses": [{"ip": host.trim_matches(['[', ']'])}],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        }],
    });
    ensure(api, cluster, "default", "endpoints", endpoints);
}

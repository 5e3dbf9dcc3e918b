# Made by `cargo xtask reference` from getting-started.md. Edit that.
#
# `carrick tutorial` prints it, to be evaluated in an empty folder. Leads to where that page ends: a plane and an agent in the background, a consumer with an order. Where you are there already, it does nothing.
if ! { command -v team && service get publishedresource buckets; } >/dev/null 2>&1; then
carrick plane --data-dir plane --port-kcp 7443 --port-service 7444 >plane.log &
until kubectl --kubeconfig plane/provider.kubeconfig get apiexports >/dev/null 2>&1; do kill -0 $! || break; sleep 0.2; done
kcp() { kubectl --kubeconfig plane/kcp-admin.kubeconfig "$@"; }
service() { kubectl --kubeconfig plane/service.kubeconfig "$@"; }
provider() { kubectl --kubeconfig plane/provider.kubeconfig "$@"; }
team() { kubectl --kubeconfig plane/kcp-admin.kubeconfig --server https://127.0.0.1:7443/clusters/root:team "$@"; }
cat >crd.yaml <<'END'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: buckets.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Bucket, listKind: BucketList, plural: buckets, singular: bucket}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Region, type: string, jsonPath: .spec.region}
    - {name: URL, type: string, jsonPath: .status.url}
    schema:
      openAPIV3Schema:
        description: A place for files.
        type: object
        properties:
          spec:
            type: object
            required: [region]
            properties:
              region: {type: string, enum: [eu, us]}
              size: {type: integer, minimum: 1}
          status:
            type: object
            properties:
              url: {type: string}
END
service apply -f crd.yaml
service wait crd/buckets.example.com --for=condition=Established
carrick init --crd crd.yaml --out offer --workspace root:provider --kcp-user provider
service apply -f offer/service-cluster/1-agent-crd.yaml
service wait crd/publishedresources.syncagent.kcp.io --for=condition=Established
service apply -f offer/service-cluster
provider apply -f offer/provider-workspace
api-syncagent --namespace kcp-system --apiexportendpointslice-ref example.com \
  --kubeconfig plane/service.kubeconfig --kcp-kubeconfig plane/provider.kubeconfig --metrics-address 0 2>agent.log &
service wait publishedresource/buckets --for=condition=ExportUpdated
service get publishedresources
kcp apply -f plane/examples/workspace.yaml
kcp wait ws/team --for=jsonpath='{.status.phase}'=Ready
team apply -f offer/consumer-workspace/1-binding.yaml
team wait apibinding/example.com --for=condition=Ready
team apply -f offer/consumer-workspace/2-order.yaml
until service get buckets -A -o name | grep -q bucket; do sleep 0.2; done
service get buckets -A
namespace=$(service get buckets -A -o jsonpath='{.items[0].metadata.namespace}')
name=$(service get buckets -A -o jsonpath='{.items[0].metadata.name}')
service -n "$namespace" patch bucket "$name" --subresource=status --type=merge -p '{"status":{"url":"https://files.example.com/1"}}'
team wait bucket/my-bucket --for=jsonpath='{.status.url}'=https://files.example.com/1
team get buckets
team patch bucket my-bucket --type=merge -p '{"spec":{"region":"us"}}'
service -n "$namespace" wait bucket "$name" --for=jsonpath='{.spec.region}'=us
carrick doctor --namespace kcp-system --apiexportendpointslice-ref example.com \
  --kubeconfig plane/service.kubeconfig --kcp-kubeconfig plane/provider.kubeconfig
fi

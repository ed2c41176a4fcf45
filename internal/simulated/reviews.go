package simulated

// Reviews is a ServiceEntry for the service reviews in the default namespace, with one
// instance of each of two versions.
const Reviews = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: reviews}
spec:
  hosts: [reviews.default.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints:
  - {address: 10.1.0.1, ports: {http: 8080}, labels: {version: v1}}
  - {address: 10.1.0.2, ports: {http: 8080}, labels: {version: v2}}
`

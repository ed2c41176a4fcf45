package wire

// RegistryVersion is the apiVersion of answers and actions about several objects, and of
// those about proxies.
const RegistryVersion = RegistryGroup + "/v1"

// RegistryGroup is the API group of RegistryVersion.
const RegistryGroup = "registry.istio.io"

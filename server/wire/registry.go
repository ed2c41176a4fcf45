package wire

// RegistryVersion is the apiVersion of answers and actions about several objects, and of
// those about proxies.
const RegistryVersion = "registry.istio.io/v1"

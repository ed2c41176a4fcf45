package schema

import "github.com/pilot-api/pilot-api/diag"

// KindServiceAccount is the kind of identities of programs.
const KindServiceAccount = "ServiceAccount"

// ServiceAccount is the spec of a ServiceAccount. Its fields are those of Kubernetes, and
// mean nothing here.
type ServiceAccount struct {
	Secrets                      []map[string]any `json:"secrets,omitempty"`
	ImagePullSecrets             []map[string]any `json:"imagePullSecrets,omitempty"`
	AutomountServiceAccountToken *bool            `json:"automountServiceAccountToken,omitempty"`
}

func init() {
	register(&Kind{
		Version: "v1", Kind: KindServiceAccount, Plural: "serviceaccounts", Singular: "serviceaccount",
		Dashed: "service-account", ShortNames: []string{"sa"}, Flat: true,
		Doc: "A ServiceAccount is the identity of a program, such as a proxy or a pipeline: the user system:serviceaccount:NAMESPACE:NAME, in the groups system:serviceaccounts and system:serviceaccounts:NAMESPACE. " +
			"The server issues tokens for it (kubectl create token, istioctl token create). A token ends at its time, when it is revoked (istioctl token revoke), or when the ServiceAccount is deleted. It is not valid for a ServiceAccount that is created again under the same name, because that has another uid.",
		spec:  inJSON[ServiceAccount](),
		check: checkAs(func(*ServiceAccount) diag.List { return nil }),
	})
}

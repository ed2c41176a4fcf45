package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"net/http"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// inProtobuf returns an object as client-go sends it.
func inProtobuf(t *testing.T, o runtime.Object) string {
	t.Helper()
	var text strings.Builder
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, rbac.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	if err := protobuf.NewSerializer(scheme, scheme).Encode(o, &text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestProtobufOfBuiltInKinds checks what is refused of objects in protobuf, and that other
// kinds are not accepted in it. TestKubectl has what is accepted.
func TestProtobufOfBuiltInKinds(t *testing.T) {
	const asProtobuf = "Content-Type: application/vnd.kubernetes.protobuf"
	w := servertest.Start(t)
	accounts, roles := pathOf("ServiceAccount", "shop"), pathOf("Role", "shop")
	account := &core.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: "ci", Namespace: "shop"}}
	text := inProtobuf(t, account)
	w.Want(http.StatusCreated, "POST", accounts, text, asProtobuf)
	w.Want(http.StatusConflict, "POST", accounts, text, asProtobuf)
	w.Want(http.StatusBadRequest, "POST", roles, text, asProtobuf)
	for _, cut := range []string{"", text[:3], text[:len(text)/2], "k8s\x00", "{}", strings.Repeat("x", 1000)} {
		w.Want(http.StatusBadRequest, "POST", accounts, cut, asProtobuf)
	}
	pod := &core.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "ci", Namespace: "shop"}}
	w.Want(http.StatusUnprocessableEntity, "POST", accounts, inProtobuf(t, pod), asProtobuf)
	account.Name, account.ImagePullSecrets = "pulls", []core.LocalObjectReference{{Name: "x"}}
	if a := w.Do("POST", accounts, inProtobuf(t, account), asProtobuf); a.StatusCode/100 == 2 && !strings.Contains(a.Text, "imagePullSecrets") {
		t.Errorf("a field is dropped: %d %s", a.StatusCode, a.Text)
	}
	role := &rbac.Role{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "shop"}, Rules: []rbac.PolicyRule{{APIGroups: []string{""}, Resources: []string{"x"}}}}
	w.Want(http.StatusUnprocessableEntity, "POST", roles, inProtobuf(t, role), asProtobuf) // It has no verbs.
	w.Want(http.StatusUnsupportedMediaType, "POST", servertest.RulesPath, text, asProtobuf)

	const asStrategic = "Content-Type: application/strategic-merge-patch+json"
	w.Want(http.StatusOK, "PATCH", accounts+"/ci", `{"metadata":{"labels":{"a":"b"}}}`, asStrategic)
	for _, bad := range []string{"", "null", "[]", "{", `{"metadata":{"labels":{"a":"b"},"labels":{}}}`} {
		w.Want(http.StatusBadRequest, "PATCH", accounts+"/ci", bad, asStrategic)
	}
	w.Want(http.StatusUnprocessableEntity, "PATCH", accounts+"/ci", `{"metadata":{"labels":"b"}}`, asStrategic)
	w.Want(http.StatusUnsupportedMediaType, "PATCH", servertest.RulesPath+"/x", `{}`, asStrategic)
}

package server_test

import (
	"github.com/pilot-api/pilot-api/server/servertest"

	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// TestMetadataClient checks that a client reads, follows and deletes objects by
// their metadata only.
func TestMetadataClient(t *testing.T) {
	w := servertest.Start(t)
	client, err := metadata.NewForConfig(&rest.Config{Host: w.URL})
	if err != nil {
		t.Fatal(err)
	}
	made := w.Create("a", "labels: {team: red}")
	rules := client.Resource(servertest.RuleResource).Namespace("default")
	one, err := rules.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || one.Labels["team"] != "red" || one.UID != made.Metadata.UID {
		t.Errorf("got %+v, %v", one, err)
	}
	list, err := rules.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "a" || list.ResourceVersion != made.Metadata.ResourceVersion {
		t.Errorf("listed %+v, %v", list, err)
	}
	seen, err := rules.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	if err := rules.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"ADDED", "DELETED"} {
		event := <-seen.ResultChan()
		if o, ok := event.Object.(*metav1.PartialObjectMetadata); !ok || string(event.Type) != want || o.Name != "a" || o.Labels["team"] != "red" {
			t.Errorf("told %s %T %+v, want %s", event.Type, event.Object, event.Object, want)
		}
	}
}

package storetest

import (
	"errors"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// labelled returns a change that sets a label.
func labelled(s *suite, key, value string) store.Change {
	return func(stored *schema.Object) (*schema.Object, error) {
		meta := *stored.Meta.DeepCopy()
		metav1.SetMetaDataLabel(&meta, key, value)
		return stored.WithMeta(meta)
	}
}

var updateFuncCases = []testCase{
	{name: "stores what the function makes", run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 1))
		got, err := s.UpdateFunc(s.ctx, made.Key(), labelled(s, "app", "x"))
		if err != nil {
			s.Fatal(err)
		}
		if got.Meta.Labels["app"] != "x" || got.Meta.UID != made.Meta.UID || got.Revision() <= made.Revision() {
			s.Errorf("updated to %s", got.JSON())
		}
		s.wantSame(s.get(made.Key()), got)
		again, err := s.UpdateFunc(s.ctx, made.Key(), labelled(s, "app", "x"))
		if err != nil {
			s.Fatal(err)
		}
		s.wantSame(again, got)
	}},
	{name: "as an apply makes what is not there, and changes what is", run: func(s *suite) {
		rule := Rule(s, "default", "a", 1)
		apply := store.Op{Verb: store.OpApply, Key: rule.Key(), Change: func(stored *schema.Object) (*schema.Object, error) {
			if stored == nil {
				return rule, nil
			}
			return labelled(s, "app", "x")(stored)
		}}
		for _, labels := range []map[string]string{nil, {"app": "x"}} {
			got, err := store.Single(s.Txn(s.ctx, []store.Op{apply}))
			if err != nil || !maps.Equal(got.Meta.Labels, labels) {
				s.Fatalf("applied to %v, %v", got, err)
			}
			s.wantSame(s.get(rule.Key()), got)
		}
		absent := store.Op{Verb: store.OpApply, Key: Rule(s, "default", "b", 1).Key(), Change: func(*schema.Object) (*schema.Object, error) {
			return at(s, Rule(s, "default", "b", 1), "1"), nil
		}}
		_, err := s.Txn(s.ctx, []store.Op{absent})
		s.wantErr(err, store.ErrNotFound)
	}},
	{name: "calls the function only if the preconditions hold", run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 1))
		update := func(key schema.Key, pre store.Preconditions) error {
			_, err := s.Txn(s.ctx, []store.Op{{Verb: store.OpUpdate, Key: key, Pre: pre, Change: labelled(s, "app", "x")}})
			return err
		}
		s.wantErr(update(made.Key(), store.Preconditions{UID: "other"}), store.ErrConflict)
		s.wantErr(update(made.Key(), store.Preconditions{ResourceVersion: "1" + made.Meta.ResourceVersion}), store.ErrConflict)
		s.wantErr(update(Rule(s, "default", "b", 1).Key(), store.Preconditions{UID: "other"}), store.ErrNotFound)
		s.wantSame(s.get(made.Key()), made)
		if err := update(made.Key(), store.Preconditions{UID: string(made.Meta.UID), ResourceVersion: made.Meta.ResourceVersion}); err != nil {
			s.Error(err)
		}
	}},
	{name: "keeps the owners of an object, and none of what nobody applied", run: func(s *suite) {
		owners := []metav1.ManagedFieldsEntry{{
			Manager: "one", Operation: metav1.ManagedFieldsOperationApply, APIVersion: Kind(s, "RouteRule").APIVersion(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:precedence":{}}}`),
		}}
		plain := s.create(Rule(s, "default", "plain", 1))
		if got := s.update(Rule(s, "default", "plain", 2)); got.Meta.ManagedFields != nil {
			s.Errorf("%s has owners: %v", plain.Key(), got.Meta.ManagedFields)
		}
		made := s.create(with(s, Rule(s, "default", "a", 1), func(m *metav1.ObjectMeta) { m.ManagedFields = owners }))
		same := s.update(Rule(s, "default", "a", 1))
		if len(same.Meta.ManagedFields) != 1 || same.Revision() != made.Revision() {
			s.Errorf("after an update that changes nothing: %s", same.JSON())
		}
		got := s.update(Rule(s, "default", "a", 2))
		if len(got.Meta.ManagedFields) != 1 || got.Meta.ManagedFields[0].Operation != metav1.ManagedFieldsOperationUpdate {
			s.Errorf("the field was taken: %s", got.JSON())
		}
		s.wantSame(s.get(made.Key()), got)
	}},
	{name: "of nothing is ErrNotFound", run: func(s *suite) {
		_, err := s.UpdateFunc(s.ctx, Rule(s, "default", "a", 1).Key(), labelled(s, "app", "x"))
		s.wantErr(err, store.ErrNotFound)
	}},
	{name: "fails as the function does and writes nothing", run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 1))
		sorry := errors.New("sorry")
		_, err := s.UpdateFunc(s.ctx, made.Key(), func(*schema.Object) (*schema.Object, error) { return nil, sorry })
		if !errors.Is(err, sorry) {
			s.Errorf("error %v", err)
		}
		s.wantSame(s.get(made.Key()), made)
	}},
	{name: "makes no other object of one", run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 1))
		other := func(*schema.Object) (*schema.Object, error) { return Rule(s, "default", "b", 1), nil }
		s.wantInvalid(s.UpdateFunc(s.ctx, made.Key(), other))
		for _, op := range []store.Op{
			{Verb: store.OpUpdate, Key: made.Key()},
			{Verb: store.OpApply, Key: made.Key()},
			{Verb: store.OpApply, Key: Rule(s, "default", "c", 1).Key()},
		} {
			op.Change = other
			s.wantInvalid(store.Single(s.Txn(s.ctx, []store.Op{op})))
		}
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}), made)
	}},
	{name: "that wants a version is ErrConflict for another", run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 1))
		s.update(Rule(s, "default", "a", 2))
		calls := 0
		_, err := s.UpdateFunc(s.ctx, made.Key(), func(*schema.Object) (*schema.Object, error) {
			calls++
			return at(s, Rule(s, "default", "a", 3), made.Meta.ResourceVersion), nil
		})
		s.wantErr(err, store.ErrConflict)
		if calls != 1 {
			s.Errorf("tried %d times", calls)
		}
	}},
	{name: "loses nothing and never conflicts, however many there are", run: func(s *suite) {
		const writers, each = 32, 20
		made := s.create(Rule(s, "default", "counter", 0))
		s.together(writers, func(int) error {
			for range each {
				_, err := s.UpdateFunc(s.ctx, made.Key(), func(stored *schema.Object) (*schema.Object, error) {
					// An object without a version is compared with the stored one all
					// the same.
					return Rule(s, "default", "counter", precedence(stored)+1), nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if got := precedence(s.get(made.Key())); got != writers*each {
			s.Errorf("counted to %d, want %d", got, writers*each)
		}
	}},
}

var contractCases = []testCase{
	{name: "a resourceVersion on create is ErrInvalid", run: func(s *suite) {
		versioned := at(s, Rule(s, "default", "a", 1), "1")
		s.wantInvalid(s.Create(s.ctx, versioned))
		s.wantInvalid(store.Single(s.Txn(s.ctx, []store.Op{creating(versioned)})))
	}},
	{name: "a resourceVersion that is no number is ErrInvalid", run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 1))
		s.wantInvalid(s.Update(s.ctx, at(s, Rule(s, "default", "a", 2), "x")))
		s.wantInvalid(s.Delete(s.ctx, made.Key(), store.Preconditions{ResourceVersion: "-1"}))
	}},
	{name: "a key twice in a transaction is ErrInvalid", run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 1))
		for _, ops := range [][]store.Op{
			{updating(Rule(s, "default", "a", 2)), updating(Rule(s, "default", "a", 3))},
			{deleting(made), creating(Rule(s, "default", "a", 3))},
			{creating(Rule(s, "default", "b", 1)), creating(Rule(s, "default", "b", 1))},
		} {
			s.wantInvalid(store.Single(s.Txn(s.ctx, ops)))
		}
		s.wantItems(s.list(store.Scope{}, store.ListOptions{}), made)
	}},
	{name: "an operation that is none is ErrInvalid", run: func(s *suite) {
		made := s.create(Rule(s, "default", "a", 1))
		for _, op := range []store.Op{
			{Verb: "replace", Object: made},
			{Verb: store.OpDelete, Object: made},
			{Verb: store.OpUpdate, Key: made.Key()},
			{Verb: store.OpUpdate, Object: made, Change: labelled(s, "app", "x")},
		} {
			s.wantInvalid(store.Single(s.Txn(s.ctx, []store.Op{op})))
		}
	}},
	{name: "more operations than allowed are ErrInvalid", run: func(s *suite) {
		s.wantInvalid(store.Single(s.Txn(s.ctx, make([]store.Op, store.MaxTxnOps+1))))
	}},
}

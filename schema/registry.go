package schema

var kinds []*Kind

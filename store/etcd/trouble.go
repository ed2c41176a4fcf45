package etcd

// trouble is the error of the last try, "" for none. It lets a repeated error be
// logged only once.
type trouble string

func (t *trouble) isNew(err error) bool {
	last := *t
	if err == nil {
		*t = ""
		return false
	}
	*t = trouble(err.Error())
	return *t != last
}

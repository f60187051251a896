package traces

// NumKinds is how many kinds of record there are, KindNone included.
const NumKinds = int(KindStop) + 1

// NumMarks is how many marks there are, log_0 to log_4.
const NumMarks = 5

var kindNames = [NumKinds]string{
	"none", "box", "polls", "poll", "transfer", "receive", "send", "wait",
	"enter", "leave", "depart", "level", "copy", "mark", "stop",
}

// String is the kind's name in listings and files.
func (k Kind) String() string {
	if int(k) < NumKinds {
		return kindNames[k]
	}
	return "unknown kind"
}

// KindByName finds a kind by its name.
func KindByName(name string) (Kind, bool) {
	for i, n := range kindNames {
		if n == name {
			return Kind(i), true
		}
	}
	return KindNone, false
}

// VerdictByName finds a verdict by its name.
func VerdictByName(name string) (Verdict, bool) {
	for i, n := range verdictNames {
		if n == name {
			return Verdict(i), true
		}
	}
	return VerdictNone, false
}

package upstream

// hide returns err with a text that may be shown. It still is what it was.
func (s *Server) hide(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if shown := s.opts.Hide(text); shown != text {
		return &hiddenError{shown, err}
	}
	return err
}

type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }

func (e *hiddenError) Unwrap() error { return e.err }

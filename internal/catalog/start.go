package catalog

// Ready is closed once every server that was never seen before has been heard
// of, or waited for long enough.
func (c *Catalog) Ready() <-chan struct{} { return c.opened }

// Heard says that a server was tried and has no list to give now; a first list
// need not wait for it.
func (c *Catalog) Heard(server string) { c.change(func() { c.heardLocked(server) }) }

func (c *Catalog) heardLocked(server string) {
	delete(c.waiting, server)
	c.openIfHeardLocked()
	c.coming.heard(server)
}

// Open ends the waiting for servers that were never seen before. It may be
// called more than once.
func (c *Catalog) Open() {
	c.change(func() {
		clear(c.waiting)
		c.openIfHeardLocked()
	})
}

// Waiting returns the servers that a first list waits for, in order.
func (c *Catalog) Waiting() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, b := range c.blocks {
		if c.waiting[b.Name] {
			out = append(out, b.Name)
		}
	}
	return out
}

// openIfHeardLocked takes over the lists that came early, in the order of the
// servers, when none is waited for any more.
func (c *Catalog) openIfHeardLocked() {
	if c.isOpen || len(c.waiting) > 0 {
		return
	}
	c.isOpen = true
	for _, b := range c.blocks {
		if lists, ok := c.early[b.Name]; ok {
			c.applyLocked(b, lists)
		}
	}
	for cl := range c.clients {
		for name, lists := range cl.early {
			if b := c.blockLocked(name); b != nil {
				cl.applyLocked(b, lists)
			}
		}
		cl.early = nil
		cl.openIfHeardLocked()
	}
	clear(c.early)
	c.pending.opens = true
}

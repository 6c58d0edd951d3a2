package mcp

// Methods of the protocol, all versions.
const (
	MethodInitialize     = "initialize"
	MethodInitialized    = "notifications/initialized"
	MethodDiscover       = "server/discover"
	MethodPing           = "ping"
	MethodToolsList      = "tools/list"
	MethodToolsCall      = "tools/call"
	MethodPromptsList    = "prompts/list"
	MethodPromptsGet     = "prompts/get"
	MethodResourcesList  = "resources/list"
	MethodTemplatesList  = "resources/templates/list"
	MethodResourcesRead  = "resources/read"
	MethodSubscribe      = "resources/subscribe"
	MethodUnsubscribe    = "resources/unsubscribe"
	MethodComplete       = "completion/complete"
	MethodSetLevel       = "logging/setLevel"
	MethodListen         = "subscriptions/listen"
	MethodTasksGet       = "tasks/get"
	MethodTasksUpdate    = "tasks/update"
	MethodTasksCancel    = "tasks/cancel"
	MethodSampling       = "sampling/createMessage"
	MethodElicit         = "elicitation/create"
	MethodRootsList      = "roots/list"
	MethodCanceled       = "notifications/cancelled"
	MethodProgress       = "notifications/progress"
	MethodMessage        = "notifications/message"
	MethodUpdated        = "notifications/resources/updated"
	MethodAcknowledged   = "notifications/subscriptions/acknowledged"
	MethodRootsChanged   = "notifications/roots/list_changed"
	MethodElicitComplete = "notifications/elicitation/complete"
)

// Kind is one of the four kinds of things that a server lists.
type Kind uint8

// The kinds.
const (
	Tools Kind = iota
	Prompts
	Resources
	Templates
)

// Kinds has all kinds, in the order of their values.
var Kinds = [...]Kind{Tools, Prompts, Resources, Templates}

// kinds has what differs between them.
var kinds = [...]struct {
	name, list, field, key, changed, capability, filter string
}{
	Tools: {
		"tools", MethodToolsList, "tools", "name",
		"notifications/tools/list_changed", "tools", "toolsListChanged",
	},
	Prompts: {
		"prompts", MethodPromptsList, "prompts", "name",
		"notifications/prompts/list_changed", "prompts", "promptsListChanged",
	},
	Resources: {
		"resources", MethodResourcesList, "resources", "uri",
		"notifications/resources/list_changed", "resources", "resourcesListChanged",
	},
	Templates: {
		"templates", MethodTemplatesList, "resourceTemplates", "uriTemplate",
		"notifications/resources/list_changed", "resources", "resourcesListChanged",
	},
}

// String returns the plural name: tools, prompts, resources, templates.
func (k Kind) String() string { return kinds[k].name }

// ListMethod returns the method that lists the kind.
func (k Kind) ListMethod() string { return kinds[k].list }

// Field returns the member of a list result that has the items.
func (k Kind) Field() string { return kinds[k].field }

// Key returns the member of an item that identifies it.
func (k Kind) Key() string { return kinds[k].key }

// ChangedMethod returns the notification that says that the list changed.
// Resources and templates share one.
func (k Kind) ChangedMethod() string { return kinds[k].changed }

// Capability returns the server capability under which the kind stands.
func (k Kind) Capability() string { return kinds[k].capability }

// Filter returns the member of a subscriptions/listen filter for the kind.
func (k Kind) Filter() string { return kinds[k].filter }

// KindOf returns the kind that a method lists.
func KindOf(listMethod string) (Kind, bool) {
	for _, k := range Kinds {
		if kinds[k].list == listMethod {
			return k, true
		}
	}
	return 0, false
}

// KindsChanged returns the kinds whose lists a notification says to have
// changed; none if it is another notification.
func KindsChanged(method string) []Kind {
	var out []Kind
	for _, k := range Kinds {
		if kinds[k].changed == method {
			out = append(out, k)
		}
	}
	return out
}

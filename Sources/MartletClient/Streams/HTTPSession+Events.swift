extension HTTPSession {
    /// The server-sent events of a URL, connected again when the stream ends or breaks.
    ///
    /// Nothing happens before the first event is asked for; a string that is no URL is an error then.
    /// `Accept: text/event-stream` and `Cache-Control: no-store` are sent unless the fields given say otherwise.
    public nonisolated func events(
        from url: String, headers: HTTPFields = HTTPFields(),
        options: EventStreamOptions = EventStreamOptions()
    ) -> EventStream {
        EventStream {
            let request = try HTTPRequest(method: .get, url: url, headerFields: headers)
            return self.reader(request, .none, options)
        }
    }

    /// The server-sent events that answer a request, such as a POST; else as ``events(from:headers:options:)``.
    /// - Parameter body: Sent with each connection: one that can be read only once allows but one.
    public nonisolated func events(
        for request: HTTPRequest, body: HTTPBody = .none,
        options: EventStreamOptions = EventStreamOptions()
    ) -> EventStream {
        EventStream { self.reader(request, body, options) }
    }

    private nonisolated func reader(
        _ request: HTTPRequest, _ body: HTTPBody, _ options: EventStreamOptions
    ) -> EventStreamReader {
        var request = request
        if request.headerFields[.accept] == nil { request.headerFields[.accept] = "text/event-stream" }
        if request.headerFields[.cacheControl] == nil { request.headerFields[.cacheControl] = "no-store" }
        // Whether to connect again is decided by what went wrong, and not by what a service calls it.
        let session = configuration.errorMapper == nil ? self : with { $0.errorMapper = nil }
        return EventStreamReader(session: session, request: request, body: body, options: options)
    }
}

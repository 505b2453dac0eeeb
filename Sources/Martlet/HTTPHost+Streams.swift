public import MartletCache
public import MartletCaching
public import MartletCore
public import MartletHosts
public import MartletStreams

// The streams of a host. Its headers, options, credentials and error mapper apply as for its verbs.
extension HTTPHost {
    /// Returns the server-sent events of a path, and reconnects when the stream ends or breaks, like
    /// ``HTTPSession/events(_:query:body:headers:lastEventID:options:)``.
    ///
    /// The request is prepared when the first event is requested; an error of the preparation is thrown then. An
    /// `Accept` of the host's ``headers`` does not replace `text/event-stream`; an `Accept` of the call does.
    /// ``errors`` maps the error that ends the sequence.
    /// - Parameters:
    ///   - path: A path below the base, or an absolute URL; see `url(for:)`.
    ///   - method: The method; `nil` for that of an `HTTPRequest`; for other paths GET, or POST with a body.
    ///   - parameters: The parameters, as for `prepare(_:_:parameters:)`.
    ///   - body: The body to send with each connection; a body that can be read only once allows one connection.
    ///   - headers: Header fields in addition to those of the host.
    ///   - lastEventID: The identifier that the first request sends in `Last-Event-ID`; `nil` for that of the options.
    ///   - options: The settings of the stream; `nil` for the defaults. The host's ``options`` apply to its requests.
    public func events<Target: HTTPTarget>(
        _ path: Target = "", method: HTTPRequest.Method? = nil, parameters: ParameterValue = .null,
        body: HTTPBody? = nil, headers: HTTPHeaders = HTTPHeaders(), lastEventID: String? = nil,
        options: EventStreamOptions? = nil
    ) -> EventStream {
        let path = path.httpTarget
        return EventStream(mapping: { mapped($0) }) {
            let headers = headers.forEvents(from: path)
            let prepared = try preparing(method, path, parameters, body, headers, nil, options?.request)
            var options = (options ?? EventStreamOptions()).continuing(after: lastEventID)
            options.request = prepared.options
            return session.events(prepared.request, body: prepared.body, options: options)
        }
    }

    /// Returns the values of JSON lines (NDJSON) at a path, like
    /// ``HTTPSession/values(_:from:query:body:headers:timeout:options:upTo:)``, decoded by the host's ``decoder``.
    ///
    /// The request is prepared when the first value is requested; an error of the preparation is thrown then.
    /// - Parameters:
    ///   - type: The type of the values.
    ///   - path: A path below the base, or an absolute URL; see `url(for:)`.
    ///   - method: The method; by default that of the target, or GET.
    ///   - parameters: The parameters, as for `prepare(_:_:parameters:)`.
    ///   - body: The body; `nil` for none.
    ///   - headers: Header fields in addition to those of the host.
    ///   - timeout: The maximum duration of the whole call, including the caller's processing of the values.
    ///   - options: The options of the call; `nil` for those of the host.
    ///   - limit: The maximum size of a line; 16 MiB by default.
    public func values<Value, Target: HTTPTarget>(
        _ type: Value.Type = Value.self, from path: Target = "", method: HTTPRequest.Method? = nil,
        parameters: ParameterValue = .null, body: HTTPBody? = nil, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, upTo limit: ByteCount = .mebibytes(16)
    ) -> ValueStream<Value> {
        let path = path.httpTarget
        let validator =
            options?.validator ?? self.options.validator ?? session.configuration.validator ?? .success
        return ValueStream(upTo: limit) { handle in
            try await stream(
                path, method: method, parameters: parameters, body: body, headers: headers, timeout: timeout,
                options: options, validate: validator
            ) { _, body in try await handle(body) }
        }
    }

    /// Fetches a path whose response may be delivered twice: first the stored response as a preview, then the final
    /// response or an error. It works like ``HTTPSession/deliveries(for:query:body:headers:cache:timeout:options:)``.
    ///
    /// The request is prepared when the first response is requested; an error of the preparation is thrown then. With
    /// ``validatesStatus``, a stored response that is not 2xx is skipped; such a response from the network is thrown as
    /// an error.
    /// - Parameters:
    ///   - path: A path below the base, or an absolute URL; see `url(for:)`.
    ///   - query: The query that is appended to the URL; null for none.
    ///   - headers: Header fields in addition to those of the host.
    ///   - timeout: The maximum duration of the call; `nil` for the timeout of the options.
    ///   - cache: The use of the cache; modes other than ``CacheMode/cacheThenNetwork`` and
    ///     ``CacheMode/cacheThenRevalidate`` deliver one response.
    ///   - options: The options of the call; `nil` for those of the host.
    public func deliveries<Target: HTTPTarget>(
        for path: Target = "", query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        cache: CacheMode = .cacheThenNetwork, timeout: Duration? = nil, options: RequestOptions? = nil
    ) -> CacheThenNetworkResponses {
        let path = path.httpTarget
        return CacheThenNetworkResponses(session, cache, accept: { try validated($0) }) {
            try mapped {
                let prepared = try prepare(
                    .get, path, parameters: query, headers: headers, timeout: timeout, options: options)
                return (.request(prepared.request), .null, HTTPHeaders(), prepared.body, prepared.options)
            }
        }
    }
}

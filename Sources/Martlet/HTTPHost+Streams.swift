public import MartletCache
public import MartletCaching
public import MartletCore
public import MartletHosts
public import MartletStreams

// Events and cached responses of a host: its headers, options, credentials and error mapper apply as to its verbs.
extension HTTPHost {
    /// The server-sent events of a path, with reconnections when the stream ends or breaks, as
    /// ``HTTPSession/events(from:query:headers:body:options:)`` has them.
    ///
    /// The request is prepared, and an error reported, when the first event is requested. An `Accept` of the host's ``headers`` does
    /// not replace `text/event-stream`; one of the call does. ``errors`` replaces the error that ends the sequence.
    /// - Parameters:
    ///   - path: A path below the base, or a whole URL; see `url(for:)`.
    ///   - method: The method; GET by default.
    ///   - parameters: As of `prepare(_:_:parameters:)`.
    ///   - headers: Header fields in addition to those of the host.
    ///   - body: Sent with each connection; a body that can be read once allows one connection.
    ///   - options: `nil` for the defaults, with the host's ``options`` for the requests.
    public func events<Target: HTTPTarget>(
        from path: Target = "", method: HTTPRequest.Method = .get, parameters: ParameterValue = .null,
        body: HTTPBody? = nil, headers: HTTPHeaders = HTTPHeaders(), options: EventStreamOptions? = nil
    ) -> EventStream {
        let path = path.httpTarget
        return EventStream(mapping: { mapped($0) }) {
            var headers = headers
            if headers["Accept"] == nil { headers["Accept"] = "text/event-stream" }
            if headers["Cache-Control"] == nil { headers["Cache-Control"] = "no-store" }
            let prepared = try prepare(
                method, path, parameters: parameters, body: body, headers: headers, options: options?.request)
            var options = options ?? EventStreamOptions()
            options.request = prepared.options
            return session.events(from: prepared.request, body: prepared.body, options: options)
        }
    }

    /// Fetches a path whose response may be delivered twice: the stored one immediately as a preview, then the final one, or an error, as
    /// ``HTTPSession/deliveries(for:query:headers:body:cache:timeout:options:)`` does.
    ///
    /// The request is prepared, and an error reported, when the first response is requested. With ``validatesStatus``, a stored
    /// response that is not 2xx is skipped, and one of the network is thrown as an error.
    /// - Parameters:
    ///   - path: A path below the base, or a whole URL; see `url(for:)`.
    ///   - query: Appended to the URL; null for none.
    ///   - headers: Header fields in addition to those of the host.
    ///   - timeout: The maximum duration of the call, ``Timeouts/total``; `nil` for that of the options.
    ///   - cache: The use of the cache; modes other than ``CacheMode/cacheThenNetwork`` and
    ///     ``CacheMode/cacheThenRevalidate`` lead to one response.
    ///   - options: `nil` for those of the host.
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

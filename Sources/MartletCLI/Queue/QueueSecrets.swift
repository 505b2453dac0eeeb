import Martlet

/// The secrets that `queue run` adds to requests, with which they are not stored.
///
/// Names and passwords of a netrc, and cookies of a file, are for their hosts. All other secrets are for one origin: they are
/// rejected if requests to several origins wait, since each would receive the secrets of the others.
struct QueueSecrets: Sendable {
    private let caller: CredentialPlan
    private let fields: HTTPFields
    private let omitted: Set<HTTPField.Name>
    /// The first option with a value for one origin.
    private let option: String?

    /// Reads the options and the netrc, and asks for a missing password.
    init(_ options: TransferOptions) async throws(UsageError) {
        var lines = try HeaderLines(options.headerLines)
        for name in [HTTPField.Name.idempotencyKey, .contentLength, .transferEncoding]
        where lines.fields[name] != nil {
            throw UsageError("option -H: a request of a queue has a \(name.rawName) of its own")
        }
        if lines.omitted.contains(.idempotencyKey) {
            throw UsageError("option -H: a request of a queue keeps its Idempotency-Key")
        }
        let hasFields = !lines.fields.isEmpty
        lines.setCookies(options)
        caller = try await CredentialPlan.load(options)
        (fields, omitted) = (lines.fields, lines.omitted)
        if caller.isOneForAll {
            option = options.bearer == nil ? "-u" : "--oauth2-bearer"
        } else {
            option = hasFields ? "-H" : fields.isEmpty ? nil : "-b"
        }
    }

    /// The one origin of the waiting requests; `nil` if there are none, or if no secret is for one origin.
    /// - Throws: A ``UsageError`` if there are several.
    func origin(ofQueue path: FilePath, _ global: GlobalOptions) async throws(UsageError) -> HTTPURL.Origin? {
        guard let option else { return nil }
        let origins = try await QueueDirectory.withIdleQueue(path, global: global) { queue in
            Set(await queue.entries.filter(\.isWaiting).map(\.ticket.url.origin))
        }
        try check(
            origins.count <= 1,
            "option \(option): requests to \(origins.count) origins wait, and each of them would be told; -n looks up "
                + "names and passwords by host")
        return origins.first
    }

    /// Adds the secrets to the requests to an origin, and to no others.
    /// - Returns: The credentials that add header fields; `nil` for none.
    func apply(to options: inout RequestOptions, for origin: HTTPURL.Origin?) -> OfflineCredentials? {
        options.authentication = caller.settings(for: origin)
        options.omittedFields = omitted
        guard !fields.isEmpty else { return nil }
        let fields = fields
        return OfflineCredentials { request in
            try check(
                try HTTPSession.url(of: request).origin == origin, "what was given is for another origin")
            var request = request
            for field in fields { request.headerFields[field.name] = nil }
            for field in fields { request.headerFields.append(field) }
            return request
        }
    }
}

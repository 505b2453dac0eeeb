import HTTPTypes
import Martlet
import SystemPackage

/// What `queue run` adds to requests that is not stored with them.
///
/// Names and passwords of a netrc, and cookies of a file, are for their hosts. All else that is given is for one origin: where
/// requests to several wait, it is refused, since each of them would be told what is meant for another.
struct QueueSecrets: Sendable {
    private let caller: CallerPlan
    private let fields: HTTPFields
    private let omitted: Set<HTTPField.Name>
    /// The first option whose value is for one origin.
    private let option: String?

    /// Reads the options: the netrc, and a password that is missing.
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
        if !options.cookies.isEmpty { lines.setDefault(.cookie, options.cookies.joined(separator: "; ")) }
        caller = try await CallerPlan.load(options)
        (fields, omitted) = (lines.fields, lines.omitted)
        if caller.isOneForAll {
            option = options.bearer == nil ? "-u" : "--oauth2-bearer"
        } else {
            option = hasFields ? "-H" : fields.isEmpty ? nil : "-b"
        }
    }

    /// The one origin that requests wait for; `nil` where none do, or nothing is for one origin.
    /// - Throws: A ``UsageError`` where there are several.
    func origin(ofQueue path: FilePath, _ global: GlobalOptions) async throws(UsageError) -> HTTPURL.Origin? {
        guard let option else { return nil }
        let origins = try await QueueDirectory.withIdleQueue(path, global: global) { queue in
            Set(await queue.entries.filter(\.isWaiting).map(\.ticket.url.origin))
        }
        guard origins.count <= 1 else {
            throw UsageError(
                "option \(option): requests to \(origins.count) origins wait, and each of them would be told; -n looks up "
                    + "names and passwords by host")
        }
        return origins.first
    }

    /// Has the requests to an origin, and no others, be sent with what was given.
    /// - Returns: What adds fields to them; `nil` for nothing.
    func apply(to options: inout RequestOptions, for origin: HTTPURL.Origin?) -> OfflineCredentials? {
        options.authentication = caller.settings(for: origin)
        options.omittedFields = omitted
        guard !fields.isEmpty else { return nil }
        let fields = fields
        return OfflineCredentials { request in
            guard try HTTPSession.url(of: request).origin == origin else {
                throw UsageError("what was given is for another origin")
            }
            var request = request
            for field in fields { request.headerFields[field.name] = nil }
            for field in fields { request.headerFields.append(field) }
            return request
        }
    }
}

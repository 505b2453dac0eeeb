import ArgumentParser
import Martlet

struct QueueAddCommand: WordsCommand {
    static let path = ["queue", "add"]
    static let configuration = makeConfiguration("Store a request, and print its number")

    @Argument(parsing: .captureForPassthrough, help: "Options and a URL, in any order") var words: [String] = []

    static func run(_ groups: [TransferOptions]) async throws(UsageError) -> ExitStatus {
        let group = groups[0]
        let addition = try QueueAddition(group)
        let (ticket, secrets) = try await QueueDirectory.withIdleQueue(
            try QueueDirectory.path(group.queue.directory), secretFields: addition.secretFields, global: group.global
        ) { queue throws(UsageError) in
            do {
                let ticket = try await queue.submit(addition.request, body: addition.body, as: addition.submission)
                return (ticket, await queue.entry(of: ticket.id)?.secretFields ?? [])
            } catch { throw UsageError(ofQueue: error) }
        }
        do throws(OutputError) { try await Console.write("\(ticket.id)\n") } catch {
            throw UsageError("request \(ticket.id) was added; \(error)", status: .writeFailed)
        }
        if !secrets.isEmpty, !group.global.isSilent {
            await Console.report(
                "not stored: \(secrets.joined(separator: ", ")); “martlet queue run” takes secrets with -u, "
                    + "--oauth2-bearer, -n, -b and -H")
        }
        return .success
    }

    /// Its own options, those of `get` that make a request, and the others of `get`, which are rejected by name.
    static let options = CommandOptions(
        OptionTable.rows(own, shared, helps: helps, rejecting: reasons, others: "has no meaning for a queued request"),
        usage: "martlet queue add [options] URL")

    private static let own: [CurlOption] = [
        QueueOptions.directory,
        .value("--lane NAME", "Queue the request in this lane; by default that of its origin", \.queue.submission.lane)
        { (text) throws(UsageError) in try OptionValues.text(text, "a name") },
        .value("--tag TEXT", "Set a name for lists and events", \.queue.submission.tag),
        .value(
            "--key KEY", "Set the Idempotency-Key; random by default if the method needs one", \.queue.submission.key
        ) { (text) throws(UsageError) in
            try check(!text.isEmpty && text.utf8.allSatisfy { (0x20..<0x7F).contains($0) }, "needs printable ASCII")
            return .value(text)
        },
        .flag(
            "--no-key", "Send no Idempotency-Key: a POST is sent once, and may become uncertain",
            \.queue.submission.key, .none),
        .value(
            "--expires TIME", "Expire after 7d (the default), 12h, 30m or 90s", \.queue.submission.timeToLive,
            OptionValues.length),
        .flag(
            "--copy", "Store a copy of the file of -T; by default it must stay unchanged",
            \.queue.submission.filePolicy, .copy),
        .value("--secret NAME", "Do not store this field of -H; Authorization and Cookie never are") {
            (group, text) throws(UsageError) in
            guard let name = HTTPField.Name(text) else { throw UsageError("“\(text)” is not a field name") }
            group.queue.secretNames.insert(name.canonicalName)
        },
        .value("-b, --cookie DATA", "Send cookies, 'name=value; …', which are not stored") {
            (group, text) throws(UsageError) in
            try check(text.contains("="), "is not name=value; “martlet queue run” accepts files of cookies")
            group.cookies.append(text)
        },
    ]

    private static let helps: [String: String] = [
        "head": "Request only the head", "user": "Set the credentials, which are not stored",
        "oauth2-bearer": "Send a bearer token, which is not stored",
        "upload-file": "Send a file with PUT; - for standard input", "silent": "Print neither notes nor errors",
    ]

    private static let shared = OptionTable.named(
        "url request header head get user-agent referer range path-as-is globoff"
            + " data data-ascii data-raw data-binary data-urlencode json form form-string form-escape upload-file"
            + " user oauth2-bearer silent show-error disable version help config")

    /// The options of `get` that belong to `queue run`, unless they are in `shared`.
    private static let sending: [CurlOption] =
        OptionTable.callers + OptionTable.cookies + OptionTable.redirects.prefix(4) + OptionTable.connecting
        + OptionTable.proxy + OptionTable.security
        + OptionTable.named("connect-timeout max-time expect100-timeout verbose")

    private static let reasons: KeyValuePairs = [
        "is an option of “martlet queue run”, which sends the requests": sending.map(\.name).joined(separator: " "),
        "each command adds one request": "next",
    ]
}

/// A request for a queue, from the options of `queue add`.
struct QueueAddition: Sendable {
    let request: HTTPRequest
    let body: HTTPBody
    let submission: OfflineSubmission
    /// The secret header fields in addition to those that are always secret.
    let secretFields: Set<HTTPField.Name>

    /// Reads the options. Blocks if they name files whose contents are part of the request.
    init(_ options: TransferOptions) throws(UsageError) {
        let queue = options.queue
        try check(options.urls.count <= 1, "give exactly one URL: each command adds one request")
        let plans = try TransferPlan.plans(for: options, from: 0, caller: CredentialPlan())
        guard let plan = plans.first else { throw UsageError("no URL was given; try martlet queue add --help") }
        if let name = plan.options.omittedFields.map(\.rawName).sorted().first {
            throw UsageError(
                "option -H '\(name):': removed fields are not stored; use the option with “martlet queue run”")
        }
        var request = plan.request
        if queue.submission.key != .automatic, request.headerFields[.idempotencyKey] != nil {
            throw UsageError("options --key and --no-key: -H sets an Idempotency-Key already")
        }
        // This value is neither sent nor stored. It marks a field that `queue run` must add.
        let hasCaller = options.user != nil || options.bearer != nil || plan.url.user != nil
        if hasCaller, request.headerFields[.authorization] == nil { request.headerFields[.authorization] = "-" }
        (self.request, body, submission) = (request, plan.body, queue.submission)
        secretFields = Set(queue.secretNames.compactMap { HTTPField.Name($0) })
    }
}

/// The requests that a command applies to, in order.
struct QueueDecision: ParsableArguments {
    @OptionGroup var options: QueueOptions

    @Argument(help: ArgumentHelp("The numbers of the requests, see “queue list”", valueName: "id")) var ids: [UInt64]

    /// Runs a function for each request, also after failures. Throws the exit code of the first failure.
    func forEach(_ body: @Sendable (OfflineQueue, OfflineID) async throws -> Void) async throws(ExitStatus) {
        let ids = ids
        let failures = try await options.open { queue in
            var failures: [UsageError] = []
            for id in ids {
                do { try await body(queue, OfflineID(id)) } catch { failures.append(UsageError(ofQueue: error)) }
            }
            return failures
        }
        for failure in failures { await failure.printMessage() }
        if let failure = failures.first { throw failure.status }
    }
}

/// The options that only `queue add` and `queue run` have.
struct QueueCommandOptions: Sendable {
    var directory: String?

    var submission = OfflineSubmission()
    /// The secret header fields in addition to those that are always secret: their names in lower case.
    var secretNames: Set<String> = []
    /// Whether all fields of `-H` are secret, because `queue run` sets those that were not stored.
    var hasSecretFields = false
    var endsWhenEmpty = false
    /// Whether the response after a 302 or 303 counts as the response to the request.
    var acceptsRedirectedResults = false
    var isJSON = false
}

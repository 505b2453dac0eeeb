import ArgumentParser
import Martlet

/// `martlet queue add`: stores a request and prints its number.
struct QueueAddCommand: WordsCommand {
    static let path = ["queue", "add"]
    static let configuration = makeConfiguration(
        "Write a request down, to be sent later, and print its number.")

    @Argument(parsing: .captureForPassthrough, help: "Options and a URL, in any order.")
    var words: [String] = []

    static func run(_ groups: [TransferOptions]) async throws(UsageError) -> ExitStatus {
        let group = groups[0]
        let addition = try QueueAddition(group)
        let (ticket, secrets) = try await QueueDirectory.withIdleQueue(
            try QueueDirectory.path(group.queue.directory), secretFields: addition.secretFields,
            global: group.global
        ) { queue throws(UsageError) in
            do {
                let ticket = try await queue.submit(
                    addition.request, body: addition.body, as: addition.submission)
                return (ticket, await queue.entry(of: ticket.id)?.secretFields ?? [])
            } catch { throw UsageError(ofQueue: error) }
        }
        do throws(OutputError) { try await Console.write("\(ticket.id)\n") } catch {
            throw UsageError("request \(ticket.id) was added; \(error)", status: .writeFailed)
        }
        if !secrets.isEmpty, !group.global.isSilent {
            await Console.report(
                "not stored: \(secrets.joined(separator: ", ")); “martlet queue run” takes what is secret, with -u, "
                    + "--oauth2-bearer, -n, -b and -H")
        }
        return .success
    }
}

extension QueueAddCommand {
    /// Its own options, those of `get` that make a request, and the others of `get`, which are rejected by name.
    static let options = CommandOptions(
        OptionTable.rows(
            own, shared, helps: helps, refusing: reasons,
            others: "makes no sense for a request that is sent later"),
        usage: "martlet queue add [options] URL")

    private static let own: [CurlOption] = [
        QueueOptions.directory,
        .value("lane", nil, "NAME", "the line it stands in; that of its origin by default", \.queue.lane) {
            (text, option) throws(UsageError) in
            try check(!text.isEmpty, "option \(option): takes a name")
            return text
        },
        .value("tag", nil, "TEXT", "what it is called in lists and events", \.queue.tag),
        .value(
            "key", nil, "KEY", "its Idempotency-Key; a random one by default where the method needs one",
            \.queue.key
        ) { (text, option) throws(UsageError) in
            try check(
                !text.isEmpty && text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }),
                "option \(option): takes printable ASCII")
            return .value(text)
        },
        .flag(
            "no-key", nil,
            "no Idempotency-Key: a POST is sent at most once, and reported where that is unclear",
            \.queue.key, .none),
        .value(
            "expires", nil, "TIME", "when to give it up, as 7d (the default), 12h, 30m or 90s",
            \.queue.expires, OptionValues.length),
        .flag(
            "copy", nil, "keep a copy of the file of -T; else it must be the same when it is sent",
            \.queue.files, .copy),
        .value("secret", nil, "NAME", "a field of -H that is not stored, as Authorization and Cookie are not")
        { (group, text) throws(UsageError) in
            guard let name = HTTPField.Name(text) else {
                throw UsageError("option --secret: “\(text)” is not a field name")
            }
            group.queue.secretNames.insert(name.canonicalName)
        },
        .value("cookie", "b", "DATA", "cookies, 'name=value; …'; they are not stored") {
            (group, text) throws(UsageError) in
            try check(text.contains("="), "option -b: a file of cookies is given to “martlet queue run”")
            group.cookies.append(text)
        },
    ]

    private static let helps: [String: String] = [
        "head": "ask for the head alone", "user": "who is calling; it is not stored",
        "oauth2-bearer": "a Bearer token; it is not stored",
        "upload-file": "put a file; - for standard input", "silent": "no notes, and no errors",
    ]

    private static let shared = OptionTable.named(
        "url request header head get user-agent referer range path-as-is globoff"
            + " data data-ascii data-raw data-binary data-urlencode json form form-string form-escape upload-file"
            + " user oauth2-bearer silent show-error disable version help config")

    /// The options of `queue run`.
    private static let sending: [CurlOption] =
        OptionTable.callers + OptionTable.cookies + OptionTable.redirects.prefix(4) + OptionTable.connecting
        + OptionTable.proxy + OptionTable.security
        + OptionTable.named("connect-timeout max-time expect100-timeout verbose")

    private static let reasons: KeyValuePairs = [
        "is given to “martlet queue run”, which sends": sending.map(\.name).joined(separator: " "),
        "one request is added at a time": "next",
    ]
}

/// A request for a queue, from the options of `queue add`.
struct QueueAddition: Sendable {
    let request: HTTPRequest
    let body: HTTPBody
    let submission: OfflineSubmission
    /// The secret header fields besides those that always are.
    let secretFields: Set<HTTPField.Name>

    /// Reads the options. Blocks if they name files whose contents are part of the request.
    init(_ options: TransferOptions) throws(UsageError) {
        let queue = options.queue
        try check(options.urls.count <= 1, "one request is added at a time: give one URL")
        let plans = try TransferPlan.plans(for: options, from: 0, caller: CredentialPlan())
        guard let plan = plans.first else {
            throw UsageError("no URL was given; try martlet queue add --help")
        }
        if let name = plan.options.omittedFields.map(\.rawName).sorted().first {
            throw UsageError(
                "\(name): that a field is left out is not kept with a request; give -H '\(name):' to “martlet queue run”"
            )
        }
        var request = plan.request
        if queue.key != .automatic, request.headerFields[.idempotencyKey] != nil {
            throw UsageError("options --key and --no-key: -H gives an Idempotency-Key already")
        }
        // The value is neither sent nor stored: it only tells that there is one to be added.
        let hasCaller = options.user != nil || options.bearer != nil || plan.url.user != nil
        if hasCaller, request.headerFields[.authorization] == nil {
            request.headerFields[.authorization] = "-"
        }
        self.request = request
        body = plan.body
        submission = OfflineSubmission(
            lane: queue.lane, tag: queue.tag, key: queue.key, timeToLive: queue.expires,
            filePolicy: queue.files)
        secretFields = Set(queue.secretNames.compactMap { HTTPField.Name($0) })
    }
}

/// The requests that a command decides about, in order.
struct QueueDecision: ParsableArguments {
    @OptionGroup var options: QueueOptions

    @Argument(help: ArgumentHelp("The numbers of the requests, as “queue list” shows them.", valueName: "id"))
    var ids: [UInt64]

    /// Runs a function for each request.
    /// - Throws: The exit code of the first failure; the function runs for the other requests nevertheless.
    func forEach(_ body: @Sendable (OfflineQueue, OfflineID) async throws -> Void) async throws(ExitStatus) {
        let ids = ids
        let failures = try await options.open { queue in
            var failures: [UsageError] = []
            for id in ids {
                do { try await body(queue, OfflineID(id)) } catch {
                    failures.append(UsageError(ofQueue: error))
                }
            }
            return failures
        }
        for failure in failures { await failure.tell() }
        if let failure = failures.first { throw failure.status }
    }
}

/// The options of `queue add` and `queue run` alone.
struct QueueCommandOptions: Sendable {
    /// The queue's directory; `nil` for that of the user.
    var directory: String?

    // MARK: queue add

    /// The lane of the request; `nil` for that of its origin.
    var lane: String?
    var tag: String?
    var key = OfflineSubmission.Key.automatic
    /// The time after which the request is not sent any more.
    var expires: Duration?
    /// The treatment of the file of `-T`.
    var files = OfflineSubmission.FilePolicy.reference
    /// The secret header fields besides those that always are: their names in lower case.
    var secretNames: Set<String> = []

    // MARK: queue run

    /// Whether all header fields are secret: they are the ones that were not stored.
    var hasSecretFields = false
    var endsWhenEmpty = false
    /// Whether the page after a redirect counts as the response to the request.
    var acceptsRedirectedResults = false
    /// Whether a line is a JSON object.
    var isJSON = false
}

import ArgumentParser
import HTTPTypes
import Martlet

/// `martlet queue add`: writes a request down and prints its number.
struct QueueAddCommand: WordsCommand {
    static let configuration = CommandConfiguration(
        words: "queue add", abstract: "Write a request down, to be sent later, and print its number.")

    @Argument(parsing: .captureForPassthrough, help: "Options and a URL, in any order.")
    var words: [String] = []

    static func run(_ words: [String]) async throws {
        try await CommandWords(options: QueueAddOptionTable.commandOptions).run(words) {
            group throws(UsageError) in
            try await add(group)
            return .success
        }
    }

    private static func add(_ group: OptionGroup) async throws(UsageError) {
        let addition = try QueueAddition(group)
        let (ticket, secrets) = try await QueueDirectory.withIdleQueue(
            try QueueDirectory.path(group.queue.directory), secretFields: addition.secretFields,
            global: group.global
        ) { queue throws(UsageError) in
            do {
                let ticket = try await queue.submit(
                    addition.request, body: addition.body, as: addition.submission)
                let entry = await queue.entry(of: ticket.id)
                return (ticket, entry?.secretFields ?? [])
            } catch {
                throw UsageError(ofQueue: error)
            }
        }
        do throws(OutputError) {
            try await Console.write("\(ticket.id)\n")
        } catch {
            throw UsageError("request \(ticket.id) was added; \(error)", status: .writeFailed)
        }
        guard !secrets.isEmpty, !group.global.isSilent else { return }
        await Console.complain(
            "martlet: not stored: \(secrets.joined(separator: ", ")); “martlet queue run” takes what is secret, with -u, "
                + "--oauth2-bearer, -n, -b and -H\n")
    }
}

/// Every option of `queue add`: its own, those of `get` that make a request, and the others of `get`, which are refused by
/// name.
enum QueueAddOptionTable {
    /// The options by name and letter.
    static let commandOptions = OptionTable.options(
        own, shared, helps: helps, refusing: reasons,
        others: "makes no sense for a request that is sent later", usage: "martlet queue add [options] URL")

    private static let own: [CurlOption] = [
        QueueOptions.directory,
        .value("lane", nil, "NAME", "the line it stands in; that of its origin by default") {
            (group, text) throws(UsageError) in
            guard !text.isEmpty else { throw UsageError("option --lane: takes a name") }
            group.queue.lane = text
        },
        .value("tag", nil, "TEXT", "what it is called in lists and events", \.queue.tag),
        .value(
            "key", nil, "KEY", "its Idempotency-Key; a random one by default where the method needs one"
        ) { (group, text) throws(UsageError) in
            guard !text.isEmpty, text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) else {
                throw UsageError("option --key: takes printable ASCII")
            }
            group.queue.key = .value(text)
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
        {
            (group, text) throws(UsageError) in
            guard let name = HTTPField.Name(text) else {
                throw UsageError("option --secret: “\(text)” is not a field name")
            }
            group.queue.secretNames.insert(name.canonicalName)
        },
        .value("cookie", "b", "DATA", "cookies, 'name=value; …'; they are not stored") {
            (group, text) throws(UsageError) in
            guard text.contains("=") else {
                throw UsageError("option -b: a file of cookies is given to “martlet queue run”")
            }
            group.transfer.cookies.append(text)
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

    private static let reasons: [(reason: String, options: [CurlOption])] = [
        (
            "is given to “martlet queue run”, which sends",
            OptionTable.callers + OptionTable.cookies + OptionTable.redirects.prefix(4)
                + OptionTable.connecting + OptionTable.proxy + OptionTable.security
                + OptionTable.named("connect-timeout max-time expect100-timeout verbose")
        ),
        ("one request is added at a time", OptionTable.named("next")),
    ]
}

/// What is written to a queue, from the options of `queue add`.
struct QueueAddition: Sendable {
    /// The request.
    let request: HTTPRequest
    /// Its body.
    let body: HTTPBody
    /// How it stands in the queue.
    let submission: OfflineSubmission
    /// The fields that are secret besides those that always are.
    let secretFields: Set<HTTPField.Name>

    /// Reads the options. Blocks where they name files whose contents are part of the request.
    init(_ group: OptionGroup) throws(UsageError) {
        let (options, wish) = (group.transfer, group.queue)
        guard options.urls.count <= 1 else {
            throw UsageError("one request is added at a time: give one URL")
        }
        let plans = try TransferPlan.plans(for: options, from: 0, caller: CallerPlan())
        guard let plan = plans.first else {
            throw UsageError("no URL was given; try martlet queue add --help")
        }
        if let name = plan.options.omittedFields.map(\.rawName).sorted().first {
            throw UsageError(
                "\(name): that a field is left out is not kept with a request; give -H '\(name):' to “martlet queue run”"
            )
        }
        var request = plan.request
        if wish.key != .automatic, request.headerFields[.idempotencyKey] != nil {
            throw UsageError("options --key and --no-key: -H gives an Idempotency-Key already")
        }
        // Nothing is sent from here, and the value is not stored: only that there is one to be added.
        let hasCaller = options.user != nil || options.bearer != nil || plan.url.user != nil
        if hasCaller, request.headerFields[.authorization] == nil {
            request.headerFields[.authorization] = "-"
        }
        self.request = request
        body = plan.body
        submission = OfflineSubmission(
            lane: wish.lane, tag: wish.tag, key: wish.key, expires: wish.expires, files: wish.files)
        secretFields = Set(wish.secretNames.compactMap { HTTPField.Name($0) })
    }
}

/// The requests that a command decides about, one after the other.
struct QueueDecision: ParsableArguments {
    @ArgumentParser.OptionGroup var options: QueueOptions

    @Argument(help: ArgumentHelp("The numbers of the requests, as “queue list” shows them.", valueName: "id"))
    var ids: [UInt64]

    /// Does something with each request.
    /// - Throws: The exit code of the first that it could not be done with; it is done with the others all the same.
    func forEach(_ body: @Sendable (OfflineQueue, OfflineID) async throws -> Void) async throws(ExitStatus) {
        let ids = ids
        let failures = try await options.open { queue in
            var failures: [UsageError] = []
            for id in ids {
                do {
                    try await body(queue, OfflineID(id))
                } catch {
                    failures.append(UsageError(ofQueue: error))
                }
            }
            return failures
        }
        for failure in failures { await failure.tell() }
        if let failure = failures.first { throw failure.status }
    }
}

/// What the options of `queue add` and `queue run` ask for that have no meaning for other commands.
struct QueueWish: Sendable {
    /// The queue's folder; `nil` for that of the user.
    var directory: String?

    // MARK: What is added

    /// The line that the request stands in; `nil` for that of its origin.
    var lane: String?
    /// What the request is called.
    var tag: String?
    /// By what the server knows a repetition.
    var key = OfflineSubmission.Key.automatic
    /// After which time the request is not sent any more.
    var expires: Duration?
    /// What becomes of the file of `-T`.
    var files = OfflineSubmission.FilePolicy.reference
    /// Fields that are secret, besides those that always are: their names in lower case.
    var secretNames: Set<String> = []

    // MARK: How it is run

    /// Whether it ends when nothing waits any more.
    var endsWhenEmpty = false
    /// Whether the page to which a redirect led counts as the response to the request.
    var acceptsRedirectedResults = false
    /// Whether a line is a JSON object.
    var isJSON = false
}

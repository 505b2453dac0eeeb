import ArgumentParser
import Martlet
import MartletUploads

/// `martlet upload`: uploads a file, resumes it after failures, and with `--directory` in later runs, too.
struct UploadCommand: WordsCommand {
    static let path = ["upload"]
    static let configuration = makeConfiguration("Upload a file, and resume it: IETF draft, tus, progress bars")

    @Argument(parsing: .captureForPassthrough, help: "Options, a file and a URL") var words: [String] = []

    static func run(_ groups: [TransferOptions]) async throws(UsageError) -> ExitStatus {
        let group = groups[0]
        let plan = try await UploadPlan(group)
        var configuration = try await SessionPlan.configuration(
            for: group, usesTLS: plan.url?.scheme != .http || group.redirects.followsRedirects,
            jar: CookiePlan.makeJar())
        configuration.authentication = plan.authentication
        if let rate = group.rateLimit { configuration.bandwidth.total.upload = .bytesPerSecond(rate) }
        let session = ProgramSessions.shared.make(configuration)
        let meter = ProgressMeter(
            form: ProgressStyle(group.global), name: plan.name, url: plan.url?.redacted ?? "")
        await meter.begin()
        // Unstructured: drawing is stopped when the upload ends, and must not delay it.
        let drawing = Task { await meter.run() }
        let result = await UploadCommand.interruptible { try await plan.run(session, meter) }
        drawing.cancel()
        await drawing.value
        let failure = UploadPlan.failure(in: result, isStored: group.upload.directory != nil)
        await meter.finish(failure?.status ?? .success, message: failure?.description ?? "")
        if let failure { throw failure }
        if case .success(let body) = result {
            do throws(OutputError) { try await Console.write(body) } catch {
                throw UsageError("\(error)", status: .writeFailed)
            }
        }
        await Console.flush()
        return .success
    }

    /// Runs a function, which SIGINT and SIGTERM cancel.
    static func interruptible<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async
        -> Result<Value, any Error>
    {
        await withTaskGroup(of: Result<Value, any Error>?.self) { group in
            group.addTask {
                do { return .success(try await body()) } catch { return .failure(error) }
            }
            group.addTask {
                _ = await SignalHandler.next()
                return nil
            }
            var result: Result<Value, any Error> = .failure(CancellationError())
            while let ended = await group.next() {
                if let ended { result = ended }
                group.cancelAll()
            }
            return result
        }
    }

    static let options = CommandOptions(
        OptionTable.rows(own, shared, helps: helps, rejecting: reasons, others: "has no meaning for an upload"),
        usage: "martlet upload [options] FILE URL | --directory DIR",
        notes: """


            Without an option for the protocol, the server is asked for the one it supports. With --directory the upload
            is stored in a queue: the same command line, or “martlet upload --directory DIR”, continues it. Credentials
            are not stored, so give them again. The body of the final response is written to standard output.
            """
    ) { $0.redirects.followsRedirects = true }

    private static let own: [CurlOption] = [
        .flag("--ietf", "Resume by draft-ietf-httpbis-resumable-upload", \.upload.options.protocol, .ietf),
        .flag("--tus", "Resume by tus 1.0.0", \.upload.options.protocol, .tus),
        .flag("--plain", "Send one request, which cannot be resumed", \.upload.options.protocol, .plain),
        .directory("--directory", "Keep the upload in a queue in this directory, see below", \.upload.directory),
        .size("--chunk-size", "Limit the size of a request; suffixes K, M, G", \.upload.chunkSize),
        .toggle("--repeat", "Allow a request to take effect twice", \.upload.options.allowsRepetition),
        .number(
            "--retry", "Limit the failures without a new byte; 5 by default", 0...1_000_000,
            \.upload.options.retry.maximumRetries),
        .toggle(
            "-L, --location", "Follow redirects, the default; --no-location does not", \.redirects.followsRedirects),
        .ignored("-f, --fail", hasOpposite: true),
    ]

    private static let shared =
        OptionTable.named("url request header user-agent referer globoff limit-rate max-redirs proto-redir")
        + OptionTable.callers + OptionTable.named("connect-timeout") + OptionTable.connecting + OptionTable.proxy
        + OptionTable.security
        + OptionTable.named(
            "silent show-error verbose no-buffer disable progress-bar progress-meter no-progress-meter progress version"
                + " help config")

    private static let helps: [String: String] = [
        "request": "Use this method to create the upload; POST by default",
        "silent": "Print nothing to standard error",
    ]

    private static let reasons: KeyValuePairs = [
        "is not needed: the file is the first argument": "upload-file data data-binary",
        "an unsuccessful status is always a failure": "fail-with-body",
    ]
}

/// The options that only `upload` has.
struct UploadCommandOptions: Sendable {
    var options = UploadOptions()
    var directory: String?
    var chunkSize: Int?
}

/// The upload of a command line: a file for a URL, or the uploads of a directory.
struct UploadPlan: Sendable {
    private let file: String?
    let url: HTTPURL?
    let authentication: AuthenticationSettings
    private let directory: String?
    private let options: UploadOptions

    var name: String { file.flatMap { FilePath($0).lastComponent?.string } ?? directory ?? "" }

    init(_ group: TransferOptions) async throws(UsageError) {
        let words = group.urls
        directory = group.upload.directory
        try check(
            words.count == 2 || words.isEmpty && directory != nil,
            "give one file and one URL, or --directory with a queue; try martlet upload --help")
        file = words.first
        let given =
            words.count == 2
            ? try CommandLineURL.parsed(
                try CommandLineURL.completed(words[1], disablesGlobbing: group.disablesGlobbing)) : nil
        url = given?.withoutUserInfo
        let caller = try await CredentialPlan.load(group)
        try check(
            given != nil || !caller.isOneForAll,
            "option \(group.bearer == nil ? "-u" : "--oauth2-bearer"): needs a file and a URL, or use -n")
        authentication = caller.settings(for: given)
        var lines = try HeaderLines(group.headerLines)
        lines.setDefaults(group)
        if let name = lines.omitted.map(\.rawName).sorted().first {
            throw UsageError("option -H '\(name):': uploads cannot remove fields")
        }
        try check(url != nil || lines.fields.isEmpty, "option -H: needs a file and a URL")
        var options = group.upload.options
        options.headers = HTTPHeaders(lines.fields)
        options.chunkSize = group.upload.chunkSize.map { ByteCount($0) }
        if let name = group.method {
            guard let method = HTTPRequest.Method(name) else {
                throw UsageError("option -X: “\(name)” is not a method")
            }
            options.method = method
        }
        self.options = options
    }

    /// Uploads the file, or the uploads of the directory.
    /// - Returns: The body of the final response.
    func run(_ session: HTTPSession, _ meter: ProgressMeter) async throws -> [UInt8] {
        guard let directory else {
            guard let file, let url else { return [] }
            return try await session.uploadResumably(file, to: url, options: options) { progress in
                meter.note(progress.completedByteCount, of: progress.totalByteCount)
            }.body
        }
        // The other fields are stored with their upload, and must not be sent with another one.
        let secrets: [HTTPField.Name] = [.authorization, .proxyAuthorization, .cookie]
        let fields = HTTPFields(options.headers.fields.filter { secrets.contains($0.name) })
        let origin = url?.origin
        let manager = try await UploadManager(session: session, directory: directory) { headers, url in
            // Fields that are not stored are sent only to the server that they were given for.
            if url.origin == origin { headers.fill(from: fields) }
        }
        do {
            let body = try await run(manager, meter)
            await manager.close()
            return body
        } catch {
            await manager.close()
            throw error
        }
    }

    private func run(_ manager: UploadManager, _ meter: ProgressMeter) async throws -> [UInt8] {
        for finding in manager.findings {
            await Console.report("warning: a file of the queue was ignored: \(finding.path): \(finding.reason)")
        }
        var uploads = await manager.uploads
        for upload in uploads {
            switch upload.state {
            // Without --repeat, a request that may have taken effect is not sent again.
            case .failed(let error) where error.code == .uploadUncertain && !options.allowsRepetition: break
            case .paused, .failed: try await upload.resume()
            case .waiting, .running, .finished, .cancelled: break
            }
        }
        if let file, let url {
            let path = try WorkingDirectory.absolute(file)
            var same: [Upload] = []
            for upload in uploads where upload.file.string == path && upload.url == url.withoutUserInfo {
                // A finished upload of an older version of the file does not count.
                if case .finished = upload.state, await !manager.hasCurrentFile(upload.id) {
                    try await manager.remove(upload.id)
                } else {
                    same.append(upload)
                }
            }
            uploads = same
            if uploads.isEmpty {
                let id = try await manager.add(file, to: url, options: options)
                uploads = await [manager.upload(id)].compactMap(\.self)
            }
        }
        let progress = manager.progress
        // Unstructured: it ends with the manager.
        Task { for await total in progress { meter.note(total.completedByteCount, of: total.totalByteCount) } }
        var body: [UInt8] = []
        var failure: (any Error)?
        for upload in uploads {
            do {
                body = try await upload.value.body
                // A finished upload of an earlier run is reported once.
                try await manager.remove(upload.id)
            } catch {
                if error is CancellationError { throw error }
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return file == nil ? [] : body
    }

    /// The message and the exit code of a failure; `nil` for success.
    static func failure(in result: Result<[UInt8], any Error>, isStored: Bool) -> UsageError? {
        switch result {
        case .success: return nil
        case .failure(let error as HTTPError): return UsageError("\(error)", status: ExitStatus(error))
        case .failure(is CancellationError):
            let next = isStored ? "run the same command again to continue" : "use --directory to be able to continue"
            return UsageError("the upload was interrupted; \(next)", status: .interrupted)
        case .failure(let error): return UsageError("\(error)", status: .readFailed)
        }
    }
}

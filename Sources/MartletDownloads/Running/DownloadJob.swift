import Glibc
import MartletAuthentication
import MartletCoding
package import MartletCore
import MartletDigests
import Synchronization

/// One download, which may run any number of times: each run resumes where the previous one stopped, and holds the lock
/// of the part file. Two jobs with the same target never run concurrently, in any process.
package final class DownloadJob: Sendable {
    /// The inputs of a download.
    package struct Plan: Sendable {
        /// The URL as it was given, with user info.
        package var url: HTTPURL
        package var target: DownloadTarget
        package var options: DownloadOptions
        /// The record of a complete file that an earlier run was about to publish, if the outcome is not known.
        package var publication: PublicationRecord?
    }

    /// Writes the record of a complete file, before the file gets its name; `nil` removes the previous record. An error
    /// that it throws ends the run; the received bytes are retained.
    package typealias PublicationHandler = @Sendable (PublicationRecord?) async throws -> Void

    struct State {
        var url: HTTPURL
        /// The URLs before moves.
        var earlier: [HTTPURL] = []
        /// The path of the file, once it is known.
        var target: String?
        /// The record of a complete file that is about to get its name; `nil` once the outcome is known.
        var publication: PublicationRecord?
        /// The existing file that is the result.
        var present: DownloadResult?
    }

    let plan: Plan
    let session: HTTPSession
    /// The connection slots; `nil` for no other limit than the session's.
    let slots: HostConnectionSlots?
    let status: DownloadStatus
    let files: any FileSystem
    private let bandwidth: BandwidthGroup
    /// The lock on the state, used by runs, and by observers between them.
    let state: Mutex<State>

    /// Creates a download that does not run yet.
    /// - Parameters:
    ///   - session: Sends the requests; its cache is not used, and its errors are not mapped.
    ///   - slots: The connection slots; `nil` for no other limit than the session's.
    ///   - status: Receives the state, the progress and the events.
    package init(
        _ plan: Plan, session: HTTPSession, slots: HostConnectionSlots? = nil, status: DownloadStatus,
        files: any FileSystem = LinuxFileSystem()
    ) {
        self.plan = plan
        let configuration = session.configuration
        // Whether a failure is transient depends on the original error, not on its replacement by an error mapper.
        self.session =
            configuration.errors == nil && !configuration.hasStages(at: .cache)
            ? session
            : session.with {
                $0.removeStages(at: .cache)
                $0.errors = nil
            }
        (self.slots, self.status, self.files) = (slots, status, files)
        bandwidth = BandwidthGroup(session, limit: BandwidthLimit(download: plan.options.bandwidth))
        var target: String?
        if case .file(let path) = plan.target.kind { target = path.string }
        state = Mutex(State(url: plan.url, target: target, publication: plan.publication))
    }

    /// The path of the file, once it is known.
    package var path: FilePath? { state.withLock { $0.target.map { FilePath($0) } } }

    /// The current URL.
    var url: HTTPURL { state.withLock { $0.url } }

    /// Runs until the file is complete. When the task is cancelled, the bytes that another run can reuse are retained,
    /// and no connection or file is open. If an earlier run has already published the file, nothing is fetched.
    /// - Parameter onPublication: Writes the record of the complete file, before the file gets its name.
    /// - Throws: An `HTTPError`; `CancellationError`; errors of `onPublication`.
    package func run(onPublication: PublicationHandler? = nil) async throws -> DownloadResult {
        if let publication = state.withLock({ $0.publication }) {
            if let result = try await complete(publication) { return result }
            state.withLock { $0.publication = nil }
            try await onPublication?(nil)
        }
        let run = DownloadRun(self, onPublication: onPublication)
        do { return try await run.run() } catch let error as HTTPError {
            guard error.code == .fileExists, let present = state.withLock({ $0.present }) else { throw error }
            let result = try await run.verifyExisting(present, after: error)
            // The file appeared during the transfer, and the received bytes are useless.
            if error.unpublishedFile != nil { try? await discard() }
            return shown(result)
        }
    }

    /// Changes the URL from the next run on. Received bytes are reused if the validators are the same there.
    package func move(to url: HTTPURL) {
        state.withLock { state in
            state.earlier.append(state.url)
            state.url = url
        }
    }

    /// Changes the maximum rate immediately.
    package func setBandwidth(_ rate: BandwidthRate?) { bandwidth.setLimit(BandwidthLimit(download: rate)) }

    /// The effect of limits on the transfers since the last call.
    var hold: BandwidthThrottling { bandwidth.checkThrottling() }

    /// Removes the received bytes while the download does not run.
    /// - Throws: `.alreadyInProgress` if it runs elsewhere; the error of a file that cannot be removed.
    package func discard() async throws(HTTPError) {
        guard let target = state.withLock({ $0.target }) else { return }
        let (files, names) = (files, PartNames(target: target))
        let isFree: Bool
        do throws(StorageError) {
            isFree = try await BlockingThreadPool.shared.run { () throws(StorageError) -> Bool in
                if try files.statusIfPresent(at: names.part) == nil {
                    // A record without its bytes is useless, and belongs to no download.
                    try PartFile.remove(names.companions, files)
                } else if let part = try PartFile.open(names, files: files) {
                    // No run has replaced the bytes for another URL: they are not those of this download.
                    if let record = part.record(), !self.isValid(record) { return true }
                    try part.discard()
                } else {
                    return false
                }
                return true
            }
        } catch { throw HTTPError(storing: error) }
        if !isFree { throw DownloadJob.targetInUseError(target) }
    }

    // MARK: Requests

    /// Returns the HTTP request of a transfer.
    func request(_ request: DownloadRequest) throws -> HTTPRequest {
        var fields = try plan.options.headers.checked(request.url)
        if isCrossOrigin(request) {
            fields = fields.withoutSecrets
            let secretFields = request.isForeign ? plan.options.secretFields : []
            for name in redirects.fieldsOfOrigin.union(secretFields) { fields[name] = nil }
        }
        fields[.acceptEncoding] = "identity"
        fields[.range] = request.rangeField
        fields[.ifRange] = request.condition
        // Wanted once, and until a mirror has proven its file: a digest of the file is also valid for the later parts.
        let isUnknown = request.range?.lowerBound ?? 0 == 0 || !plan.options.mirrors.isEmpty && request.condition == nil
        if plan.options.checksum == nil, isUnknown, fields[.wantReprDigest] == nil {
            fields[.wantReprDigest] = DigestField.preferences
        }
        return HTTPRequest(method: .get, url: request.url, headers: fields)
    }

    private var digestVerification: DigestVerificationPolicy {
        plan.options.request.digestVerification ?? session.configuration.digestVerification
    }

    /// Whether a file without a checksum is rejected.
    var requiresDigest: Bool { digestVerification == .required }

    private var redirects: RedirectPolicy {
        var policy = plan.options.request.redirects ?? session.configuration.redirects
        policy.secretFields.formUnion(plan.options.secretFields)
        return policy
    }

    /// Whether a redirect led to another origin than that of the URL, or the URL is a mirror there: no credentials may
    /// be sent.
    private func isCrossOrigin(_ request: DownloadRequest) -> Bool {
        guard !request.isForeign else { return true }
        let urls = [url, session.settings.effective(url, plan.options.request)]
        return !urls.contains { $0.origin == request.url.origin } && !redirects.sendsCredentialsCrossOrigin
    }

    /// Returns the URL that a request is sent to: with the user info that was given, which the URL of a redirect lacks.
    func address(of request: DownloadRequest) -> HTTPURL {
        let url = request.url
        guard let userInfo = request.userInfo, url.userInfo == nil, !isCrossOrigin(request) else { return url }
        return url.with(userInfo)
    }

    /// Returns the options of a request that override the session's configuration.
    func requestOptions(for request: DownloadRequest) -> RequestOptions {
        var options = plan.options.request
        if isCrossOrigin(request) {
            options.withholdCredentials(of: session, redirects)
            if request.isForeign {
                options.omittedFields.formUnion(plan.options.secretFields)
                if redirects.sendsCredentialsCrossOrigin { options.authentication?.handler = nil }
            }
            // Credentials are not sent over plain HTTP after a redirect either.
            if url.scheme == .https, request.url.scheme == .http { options.authentication?.netrc = nil }
        }
        if !plan.options.secretFields.isEmpty { options.redirects = redirects }
        options.retry = .never
        options.decompresses = false
        // A missing part must be detected, and the received bytes must be those of the file.
        options.returnsRawBody = false
        options.ignoresContentLength = false
        options.bodyLimit = nil
        // The file is verified as a whole, because the bytes before a mismatch must not be reused either.
        if digestVerification != .off { options.digestVerification = .off }
        options.bandwidthGroup = bandwidth
        // The session's total timeout applies to a request, not to a file.
        var defaults = session.configuration.timeouts
        defaults.total = nil
        var timeouts = options.timeouts.merged(over: defaults)
        let stall = min(max(.milliseconds(100), plan.options.stallTimeout), .seconds(86_400))
        timeouts.idle = min(timeouts.idle ?? stall, stall)
        timeouts.head = min(timeouts.head ?? stall, stall)
        options.timeouts = timeouts
        return options
    }

    // MARK: Files

    /// Whether the bytes of a record may be reused: its URL, without a signature, is the current or an earlier one.
    func isValid(_ record: ResumeRecord) -> Bool {
        let (url, earlier) = state.withLock { ($0.url, $0.earlier) }
        return ([url] + earlier).contains { known in
            record.url == known.absoluteForm || SignedURL.unsigned(record.url) == SignedURL.unsigned(known.absoluteForm)
        }
    }

    static func targetInUseError(_ target: String) -> HTTPError {
        HTTPError(
            .alreadyInProgress, phase: .preparing, message: "\(target) is already being written by another download")
    }

    /// Opens the part file of the target; if the file name is unknown, that of a record in the directory with this URL.
    /// - Parameter use: Uses the part file on the same worker.
    /// - Returns: The result of `use`; `nil` if no file was opened.
    func openPart(_ use: @escaping @Sendable (PartFile) -> ResumeRecord?) async throws -> ResumeRecord? {
        var found = state.withLock { $0.target }.map { PartNames(target: $0) }
        if found == nil, case .directory(let path) = plan.target.kind {
            let directory = DownloadJob.directory(path)
            // Most directories have no record: then there is nothing to read.
            if DirectoryRecordIndex.shared.names(known: directory)?.isEmpty == true { return nil }
            found = await BlockingThreadPool.shared.run { self.record(inDirectory: directory) }
        }
        guard let names = found else { return nil }
        return try await BlockingThreadPool.shared.run { Result { use(try self.open(names)) } }.get()
    }

    /// Opens the part file with the name that a response proposes. Blocks.
    func open(proposed responseHead: DownloadResponseHead) throws -> PartFile {
        switch plan.target.kind {
        case .file(let path): return try open(PartNames(target: path.string))
        case .directory(let path):
            let name = PartNames.proposed(disposition: responseHead.disposition, url: responseHead.url)
            return try open(PartNames(target: DownloadJob.directory(path) + name))
        }
    }

    /// Returns the path of a directory with a slash at its end; empty for the working directory.
    static func directory(_ path: FilePath) -> String {
        let text = path.string
        return text.isEmpty || text.hasSuffix("/") ? text : text + "/"
    }

    private func record(inDirectory directory: String) -> PartNames? {
        guard let names = try? DirectoryRecordIndex.shared.names(in: directory, files) else { return nil }
        // A truncated record name does not have the whole name of the target, but the URL may.
        let usual = PartNames(target: directory + PartNames.proposed(disposition: nil, url: url))
        for name in names {
            let target =
                usual.record == directory + name
                ? usual.target : directory + name.dropLast(PartNames.recordSuffix.count)
            guard PartNames(target: target).record == directory + name,
                let record = try? PartFile.record(at: directory + name, files: files), isValid(record)
            else { continue }
            return PartNames(target: target)
        }
        return nil
    }

    private func open(_ first: PartNames) throws -> PartFile {
        let collision = plan.options.collision
        var names = first
        for number in 1...1000 {
            let present = kind(of: names.target)
            let isTaken = present != nil
            if isTaken, collision == .fail || collision == .skip || (collision == .overwrite && present == .directory) {
                // A run that was killed after it gave the file its name may have left a record, which is useless.
                if kind(of: names.part) == nil { try? PartFile.remove(names.companions, files) }
                skip(names.target)
                let what = present == .directory ? "there is a directory" : "there is a file"
                throw HTTPError(
                    .fileExists, phase: .preparing, message: "\(names.target): \(what) of that name", method: .get,
                    url: url)
            }
            if collision == .overwrite, present == .other, DownloadJob.isEndpoint(names.target) {
                throw HTTPError(
                    .fileFailed, phase: .preparing,
                    message: "\(names.target): it is a device, a pipe or a socket, which a download does not replace; "
                        + "write to it with a plain request, such as martlet get -o")
            }
            if !isTaken || collision == .overwrite {
                if let part = try PartFile.open(names, durability: plan.options.durability, files: files) {
                    state.withLock { $0.target = names.target }
                    return part
                }
                guard collision == .rename else { throw DownloadJob.targetInUseError(names.target) }
            }
            names = first.numbered(number)
        }
        throw HTTPError(
            .fileExists, phase: .preparing, message: "\(first.target): there are files of that name, up to number 999")
    }

    /// Makes an existing file the result, if `collision` is `.skip`. Blocks.
    func skip(_ target: String) {
        guard plan.options.collision == .skip, kind(of: target) == .file else { return }
        guard let byteCount = try? files.status(at: target).byteCount else { return }
        let result = DownloadResult(
            path: FilePath(target), byteCount: byteCount, receivedByteCount: 0, url: url.withoutUserInfo)
        state.withLock { ($0.target, $0.present) = (target, result) }
    }

    /// Whether a path is a device, a pipe or a socket, or a symbolic link to one, such as `/dev/stdout`.
    private static func isEndpoint(_ path: String) -> Bool {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return false }
        return [S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT)
    }

    private func kind(of path: String) -> FileStatus.Kind? { try? files.status(at: path).kind }

    /// Emits an event of a run, and notifies the session's delegate of a resumed download.
    func report(_ event: DownloadEvent, total: UInt64?) {
        status.events.add(event)
        status.changed(event)
        guard case .started(let count) = event, count > 0, let delegate = session.configuration.delegate else { return }
        let url = url.withoutUserInfo
        // Unstructured, because a run holds the part file, and does not wait for user code.
        Task { await delegate.transferResumed(of: url, at: count, expecting: total) }
    }
}

/// The observable state of a download, over all of its runs.
package final class DownloadStatus: Sendable {
    /// A state with its number, by which it is compared.
    package struct Stamped: Equatable, Sendable {
        /// The number of the state, counted from 1.
        package var number: UInt64
        package var state: DownloadState

        package static func == (left: Stamped, right: Stamped) -> Bool { left.number == right.number }
    }

    package let progress = CurrentValue(DownloadProgress())
    package let states: CurrentValue<Stamped>
    package let events = ReplayingEventBroadcaster<DownloadEvent>()
    /// Called with each event of a run, and with `nil` after each change of progress or state, outside of their locks.
    let changed: @Sendable (DownloadEvent?) -> Void

    package init(_ state: DownloadState = .waiting, changed: @escaping @Sendable (DownloadEvent?) -> Void = { _ in }) {
        self.changed = changed
        states = CurrentValue(Stamped(number: 1, state: state))
    }

    package var state: DownloadState { states.value.state }

    package func become(_ state: DownloadState) {
        states.change { $0 = Stamped(number: $0.number + 1, state: state) }
        changed(nil)
    }

    package func updateProgress(_ value: () -> DownloadProgress) {
        progress.update(value)
        changed(nil)
    }
}

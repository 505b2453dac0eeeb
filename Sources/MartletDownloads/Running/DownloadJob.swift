import MartletURL
import Glibc
import MartletAuthentication
import MartletCaching
import MartletCoding
package import MartletCore
import MartletDiagnostics
import MartletHosts
import MartletNetwork
package import MartletConnections
package import MartletStorage
package import MartletTransport
import Synchronization
package import SystemPackage

/// One download, as often as it is run: each run goes on where the last one stopped.
///
/// One run is on at a time. It holds the part file's lock while it is on; two jobs about one target exclude each other, in
/// whichever process they are.
package final class DownloadJob: Sendable {
    /// What is downloaded, and how.
    package struct Plan: Sendable {
        /// Where the file is, as it was given: user info and all.
        package var url: HTTPURL
        /// Where it goes.
        package var target: DownloadTarget
        /// How.
        package var options: DownloadOptions
        /// What an earlier run noted when it was about to give the file its name, where it is not known whether it did.
        package var publication: DownloadPublication?
    }

    /// Told what is to be known of a file that is about to get its name, before it does; and `nil` where what was told before
    /// does not hold any more. What it throws ends the run, with what has come kept.
    package typealias Noting = @Sendable (DownloadPublication?) async throws -> Void

    struct State {
        var url: HTTPURL
        /// Where it was before somebody moved it.
        var earlier: [HTTPURL] = []
        /// The file's name, once it is known.
        var target: String?
        /// What was noted before the file was to get its name, until it is known that it has it.
        var publication: DownloadPublication?
    }

    let plan: Plan
    let session: HTTPSession
    let slots: any ConnectionSlots
    let status: DownloadStatus
    let files: any FileSystem
    private let bandwidth: BandwidthGroup
    /// Guards the above: runs, and whoever asks between them.
    let state: Mutex<State>

    /// A download that does not run yet.
    /// - Parameters:
    ///   - plan: What and how.
    ///   - session: What makes the requests; its cache is not used, and its errors are not mapped.
    ///   - slots: Who says how many connections there may be.
    ///   - status: What is told of it.
    ///   - files: The file system.
    package init(
        _ plan: Plan, session: HTTPSession, slots: any ConnectionSlots, status: DownloadStatus,
        files: any FileSystem = LinuxFileSystem()
    ) {
        self.plan = plan
        let configuration = session.configuration
        // Whether a failure passes is decided by what went wrong, and not by what a service calls it.
        self.session =
            configuration.cache == nil && configuration.errorMapper == nil
            ? session
            : session.with {
                $0.cache = nil
                $0.errorMapper = nil
            }
        self.slots = slots
        self.status = status
        self.files = files
        bandwidth = BandwidthGroup(session, limit: BandwidthLimit(down: plan.options.bandwidth))
        var target: String?
        if case .file(let path) = plan.target { target = path.string }
        state = Mutex(State(url: plan.url, target: target, publication: plan.publication))
    }

    /// The file's name, once it is known.
    package var path: FilePath? { state.withLock { $0.target.map { FilePath($0) } } }

    /// Where the file is.
    var url: HTTPURL { state.withLock { $0.url } }

    /// Runs until the file is there. When the task is cancelled, what has come is kept, as far as another run can go on
    /// with it, and no connection or file is open any more.
    ///
    /// Where an earlier run gave the file its name and could not tell it, that is found out, and nothing is fetched.
    /// - Parameter noting: Told before the file gets its name, by what it will be known under it; `nil` for nobody.
    /// - Throws: An `HTTPError`; `CancellationError`; what `noting` throws.
    package func run(noting: Noting? = nil) async throws -> DownloadResult {
        if let publication = state.withLock({ $0.publication }) {
            if let result = try await complete(publication) { return result }
            state.withLock { $0.publication = nil }
            try await noting?(nil)
        }
        return try await DownloadRun(self, noting: noting).run()
    }

    /// The file is elsewhere from the next run on. What has come is kept where the validators are the same there.
    package func move(to url: HTTPURL) {
        state.withLock { state in
            state.earlier.append(state.url)
            state.url = url
        }
    }

    /// Changes how fast it may go, at once.
    package func setBandwidth(_ rate: BandwidthRate?) { bandwidth.setLimit(BandwidthLimit(down: rate)) }

    /// What limits did to its transfers since this was last asked.
    var hold: BandwidthHold { bandwidth.look() }

    /// Removes what has come, when it does not run.
    /// - Throws: An `HTTPError` with the code `.alreadyInProgress` where it runs elsewhere.
    package func discard() async throws {
        guard let target = state.withLock({ $0.target }) else { return }
        let files = files
        let names = PartNames(target: target)
        let isFree = await BlockingWorkers.shared.run { () -> Bool in
            do throws(StorageError) {
                _ = try files.status(at: names.part)
            } catch {
                // A record without its bytes says nothing, and belongs to nobody who has them.
                if error.isMissingFile {
                    for path in [names.record, names.nextRecord] { try? files.remove(path) }
                }
                return true
            }
            guard let part = try? PartFile.open(names, files: files) else { return false }
            part.discard()
            return true
        }
        if !isFree { throw DownloadJob.busy(target) }
    }

    // MARK: Requests

    /// The request for a question.
    func request(_ question: DownloadQuestion) throws -> HTTPRequest {
        var fields = plan.options.headers
        if isElsewhere(question) {
            fields = fields.withoutSecrets
            for name in redirects.fieldsOfOrigin { fields[name] = nil }
        }
        fields[.acceptEncoding] = "identity"
        fields[.range] = question.rangeField
        fields[.ifRange] = question.condition
        return HTTPRequest(method: .get, url: question.url, headerFields: fields)
    }

    /// What redirects take along.
    private var redirects: RedirectPolicy {
        plan.options.request.redirects ?? session.configuration.redirects
    }

    /// Whether a question goes to another origin than the file's own, to which a redirect led: credentials are for the origin
    /// that they were given for.
    private func isElsewhere(_ question: DownloadQuestion) -> Bool {
        question.url.origin != url.origin && !redirects.trustsOtherOrigins
    }

    /// What each request does otherwise than the session.
    func requestOptions(for question: DownloadQuestion) -> RequestOptions {
        var options = plan.options.request
        if isElsewhere(question) {
            var authentication = options.authentication ?? session.configuration.authentication
            authentication.credentials = nil
            authentication.tokens = nil
            // Nor in the clear because a redirect says so.
            if url.scheme == .https, question.url.scheme == .http { authentication.netrc = nil }
            options.authentication = authentication
            options.omittedFields.formUnion(redirects.defaultsOfOrigin)
        }
        options.retry = .never
        options.decompresses = false
        // What is missing has to be known, and what comes to be the file's bytes.
        options.isRaw = false
        if options.ignoresContentLength { options.ignoresContentLength = false }
        options.bodyLimit = nil
        options.bandwidthGroup = bandwidth
        var timeouts = options.timeouts ?? session.configuration.timeouts
        let stall = min(max(.milliseconds(100), plan.options.stallTimeout), .seconds(86_400))
        timeouts.idle = min(timeouts.idle ?? stall, stall)
        timeouts.head = min(timeouts.head ?? stall, stall)
        timeouts.total = plan.options.request.timeouts?.total
        options.timeouts = timeouts
        return options
    }

    // MARK: Files

    /// Whether what a record claims may be kept: it is of this URL, but for what signs its query; or of one where the file was
    /// before.
    func vouches(for record: ResumeRecord) -> Bool {
        let (url, earlier) = state.withLock { ($0.url, $0.earlier) }
        return ([url] + earlier).contains { known in
            record.url == known.absoluteForm
                || SignedURL.unsigned(record.url) == SignedURL.unsigned(known.absoluteForm)
        }
    }

    static func busy(_ target: String) -> HTTPError {
        HTTPError(
            .alreadyInProgress, phase: .preparing, message: "\(target): another download is about this file")
    }

    /// Opens the part file of the target, or that of the record in its folder that is about this URL; none while the name is
    /// not known.
    /// - Parameter use: What is done with it at once, on the same worker.
    /// - Returns: What that returns; nil where none was opened.
    func openPart<Value: Sendable>(_ use: @escaping @Sendable (PartFile) -> Value) async throws -> Value? {
        if let target = state.withLock({ $0.target }) {
            return try await openPart(PartNames(target: target), use)
        }
        guard case .folder(let path) = plan.target else { return nil }
        let folder = DownloadJob.folder(path)
        // Most folders have no record at all: then there is nothing to be read.
        if FolderRecords.shared.names(known: folder)?.isEmpty == true { return nil }
        let job = self
        let found = await BlockingWorkers.shared.run { job.record(inFolder: folder) }
        guard let found else { return nil }
        return try await openPart(found, use)
    }

    /// Opens the part file under the name that an answer proposes. It blocks.
    func open(proposed facts: AnswerFacts) throws -> PartFile {
        var names = PartNames(target: "")
        switch plan.target {
        case .file(let path): names = PartNames(target: path.string)
        case .folder(let path):
            let name = PartNames.proposed(disposition: facts.disposition, url: facts.url)
            names = PartNames(target: DownloadJob.folder(path) + name)
        }
        return try open(names)
    }

    private static func folder(_ path: FilePath) -> String {
        let text = path.string
        return text.isEmpty || text.hasSuffix("/") ? text : text + "/"
    }

    private func record(inFolder folder: String) -> PartNames? {
        guard let names = try? FolderRecords.shared.names(in: folder, files) else { return nil }
        // A name that was cut says nothing about its target's, which the URL may have.
        let usual = PartNames(target: folder + PartNames.proposed(disposition: nil, url: url))
        for name in names {
            let target =
                usual.record == folder + name
                ? usual.target : folder + name.dropLast(PartNames.recordSuffix.count)
            guard PartNames(target: target).record == folder + name,
                let record = try? PartFile.record(at: folder + name, files: files), vouches(for: record)
            else { continue }
            return PartNames(target: target)
        }
        return nil
    }

    private func openPart<Value: Sendable>(
        _ names: PartNames, _ use: @escaping @Sendable (PartFile) -> Value
    ) async throws -> Value {
        let job = self
        return try await BlockingWorkers.shared.run { Result { use(try job.open(names)) } }.get()
    }

    private func open(_ first: PartNames) throws -> PartFile {
        let collision = plan.options.collision
        var names = first
        for number in 1...1000 {
            let isThere = kind(of: names.target)
            let isTaken = isThere != nil
            if isTaken, collision == .fail || (collision == .overwrite && isThere == .folder) {
                removeOrphans(of: names)
                throw HTTPError(
                    .fileExists, phase: .preparing,
                    message:
                        "\(names.target): \(isThere == .folder ? "there is a folder" : "there is a file") of that name"
                )
            }
            if collision == .overwrite, isThere == .other, DownloadJob.isEndpoint(names.target) {
                throw HTTPError(
                    .fileFailed, phase: .preparing,
                    message:
                        "\(names.target): it is a device, a pipe or a socket, which a download does not replace; "
                        + "write to it with a request of another kind, such as martlet get -o")
            }
            if !isTaken || collision == .overwrite {
                if let part = try PartFile.open(names, files: files) {
                    state.withLock { $0.target = names.target }
                    return part
                }
                guard collision == .rename else { throw DownloadJob.busy(names.target) }
            }
            names = first.numbered(number)
        }
        throw HTTPError(
            .fileExists, phase: .preparing,
            message: "\(first.target): there are files of that name, up to number 999")
    }

    /// Removes what a run left beside the file that it had given its name when it was killed: a record without its bytes says
    /// nothing.
    private func removeOrphans(of names: PartNames) {
        guard kind(of: names.part) == nil else { return }
        for path in [names.record, names.nextRecord, names.nextPart] where kind(of: path) == .file {
            try? files.remove(path)
        }
    }

    /// Whether a name is that of a device, a pipe or a socket, or of a symbolic link to one, such as `/dev/stdout`.
    private static func isEndpoint(_ path: String) -> Bool {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return false }
        return [S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT)
    }

    private func kind(of path: String) -> FileStatus.Kind? { try? files.status(at: path).kind }
}

/// Tells runs twenty times a second that time has passed: one clock for all of a process, so that short downloads do not make
/// and end a timer each.
final class DownloadClock: Sendable {
    private struct State {
        var listeners: [UInt64: @Sendable () -> Void] = [:]
        var lastNumber: UInt64 = 0
        var isGoing = false
    }

    /// The clock of all downloads.
    static let shared = DownloadClock()
    /// How often it tells.
    private static let interval = Duration.milliseconds(50)

    /// Guards the above: runs that begin and end, and the clock's task.
    private let state = Mutex(State())

    /// How many it tells.
    var listenerCount: Int { state.withLock { $0.listeners.count } }

    /// Tells one more from now on, first within a twentieth of a second.
    /// - Parameter tell: Returns at once.
    /// - Returns: By what it is removed.
    func add(_ tell: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, mustGo) = state.withLock { state in
            state.lastNumber += 1
            state.listeners[state.lastNumber] = tell
            let mustGo = !state.isGoing
            state.isGoing = true
            return (state.lastNumber, mustGo)
        }
        // Detached, since it is nobody's in particular: it ends when nobody listens any more.
        if mustGo { Task.detached { await self.go() } }
        return number
    }

    /// Tells one no more.
    func remove(_ number: UInt64) { state.withLock { $0.listeners[number] = nil } }

    private func go() async {
        while true {
            try? await Task.sleep(for: DownloadClock.interval)
            let listeners = state.withLock { state in
                state.isGoing = !state.listeners.isEmpty
                return Array(state.listeners.values)
            }
            if listeners.isEmpty { return }
            for tell in listeners { tell() }
        }
    }
}

/// What can be seen of a download from outside, over all of its runs.
package final class DownloadStatus: Sendable {
    /// A state and which in the line of states it is.
    package struct Stamped: Equatable, Sendable {
        /// Its number in the line of states.
        package var number: UInt64
        /// The state.
        package var state: DownloadState

        package static func == (left: Stamped, right: Stamped) -> Bool { left.number == right.number }
    }

    /// The newest progress.
    package let progress = NewestValue(DownloadProgress())
    /// The newest state.
    package let states: NewestValue<Stamped>
    /// What has happened.
    package let events = EventLog<DownloadEvent>()
    private let lastNumber = Atomic<UInt64>(1)

    /// The status of a download that is in a state.
    package init(_ state: DownloadState = .waiting) { states = NewestValue(Stamped(number: 1, state: state)) }

    /// The newest state.
    package var state: DownloadState { states.value.state }

    /// Goes over to a state.
    package func become(_ state: DownloadState) {
        states.update { Stamped(number: lastNumber.add(1, ordering: .relaxed).newValue, state: state) }
    }
}

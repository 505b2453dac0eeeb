import MartletCore
import Synchronization

/// The stored requests of a queue, written by one thread in call order. Cancelling a task does not interrupt a write.
final class OfflineStore: Sendable {
    struct Contents: Sendable {
        var summaries: [OfflineSummary] = []
        /// Requests that were being sent when a process ended, and must not be sent again automatically.
        var interrupted: Set<OfflineID> = []
        /// Reports on files that are not requests.
        var findings: [OfflineEvent] = []
        /// The highest number that may have been assigned.
        var lastNumber: UInt64 = 0
    }

    let files: any FileSystem
    private let directory: RecordDirectory
    private let workers: BlockingThreadPool
    /// Whether the directory was released. Used only by the worker.
    private let isReleased = Mutex(false)

    private init(_ directory: RecordDirectory, _ workers: BlockingThreadPool, _ files: any FileSystem) {
        (self.directory, self.workers, self.files) = (directory, workers, files)
    }

    /// The error of calls after ``close(lastNumber:)``.
    static var closed: HTTPError {
        HTTPError(
            .offlineQueueClosed, phase: .preparing, message: "the offline queue was closed; open its directory again")
    }

    // MARK: Opening

    /// Opens a directory, creating it if it is missing, and reads its contents.
    static func open(_ path: String, files: any FileSystem) async throws(HTTPError) -> (OfflineStore, Contents) {
        let workers = BlockingThreadPool(threadLimit: 1)
        let (directory, contents) = try await workers.run { () throws(HTTPError) in
            let absolute = try HTTPError.storing { () throws(StorageError) in try WorkingDirectory.absolute(path) }
            let directory: RecordDirectory
            do throws(RecordDirectory.OpenError) {
                directory = try RecordDirectory(path: absolute, kind: "request", hasBodies: true, files: files)
            } catch { throw HTTPError(opening: error, path: path, owner: "queue", contents: "requests") }
            var contents = Contents()
            let numbers = try HTTPError.storing { () throws(StorageError) in try directory.numbers() }
            var unreadable: [(UInt64, OfflineRecordError)] = []
            for number in numbers {
                do throws(OfflineRecordError) {
                    let (request, byteCount) = try read(number, directory)
                    contents.summaries.append(OfflineSummary(request, recordByteCount: byteCount))
                    if request.stage == .sending, !request.isRepeatable { contents.interrupted.insert(request.id) }
                } catch {
                    // The lane and the position of this request are unknown, so others could overtake it.
                    if case .record(.version) = error {
                        throw HTTPError(
                            .fileFailed, phase: .preparing,
                            message: "\(directory.recordPath(number)): \(error); open the directory with that version")
                    }
                    unreadable.append((number, error))
                }
            }
            contents.findings = unreadable.map { finding($0, $1, directory) }
            contents.lastNumber = directory.lastNumber
            return (directory, contents)
        }
        return (OfflineStore(directory, workers, files), contents)
    }

    /// Returns the report on a record that cannot be read. A damaged record is moved.
    private static func finding(_ number: UInt64, _ recordError: OfflineRecordError, _ directory: RecordDirectory)
        -> OfflineEvent
    {
        let here = FilePath(directory.recordPath(number))
        guard recordError.isDamage else { return .recordSkipped(path: here, reason: recordError.description) }
        do throws(StorageError) {
            return .recordQuarantined(path: FilePath(try directory.setAside(number)), reason: recordError.description)
        } catch { return .recordSkipped(path: here, reason: "\(recordError.description); \(error.description)") }
    }

    private static func read(_ number: UInt64, _ directory: RecordDirectory) throws(OfflineRecordError) -> (
        QueuedRequest, Int
    ) {
        let bytes: [UInt8]
        do throws(StorageError) { bytes = try directory.read(number, limit: QueuedRequestCodec.byteLimit) } catch {
            throw .storage(error)
        }
        do throws(RecordEnvelope.FormatError) {
            let request = try QueuedRequestCodec.decode(bytes)
            guard request.id.number == number else { throw .field("number", offset: 0) }
            return (request, bytes.count)
        } catch { throw .record(error) }
    }

    // MARK: Requests

    func load(_ id: OfflineID) async throws(OfflineRecordError) -> QueuedRequest {
        try await workers.run { [directory] () throws(OfflineRecordError) in
            try OfflineStore.read(id.number, directory).0
        }
    }

    /// Encodes a request.
    /// - Throws: An `HTTPError` if the bytes exceed the limit for reading, alone or with a dead letter.
    func record(of request: QueuedRequest) async throws(HTTPError) -> [UInt8] {
        try await workers.run { () throws(HTTPError) in
            let bytes = try OfflineStore.encode(request)
            let limit = QueuedRequestCodec.byteLimit - OfflineDeadLetter.byteLimit
            guard bytes.count <= limit, (try? QueuedRequestCodec.decode(bytes)) != nil else {
                throw OfflineStore.tooLarge
            }
            return bytes
        }
    }

    private static var tooLarge: HTTPError {
        HTTPError(.invalidRequest, phase: .preparing, message: "the request's head is too large to be stored")
    }

    private static func encode(_ request: QueuedRequest) throws(HTTPError) -> [UInt8] {
        guard let bytes = try? QueuedRequestCodec.encode(request) else { throw tooLarge }
        return bytes
    }

    /// Writes a new request; returns when it is on disk. After a failure nothing of it is left.
    func add(_ id: OfflineID, _ record: [UInt8]) async throws(HTTPError) {
        try await stored { (directory) throws(StorageError) in try directory.add(id.number, record) }
    }

    func save(_ request: QueuedRequest) async throws(HTTPError) {
        _ = try await owned { (directory) throws(HTTPError) in try OfflineStore.write(request, directory) }
    }

    /// Reads, changes and writes a request atomically.
    /// - Parameter change: Returns whether the request is to be written.
    /// - Returns: The number of its bytes in the directory.
    @discardableResult func change(_ id: OfflineID, _ change: @escaping @Sendable (inout QueuedRequest) -> Bool)
        async throws(HTTPError) -> UInt64
    {
        try await owned { (directory) throws(HTTPError) in
            var request: QueuedRequest
            var byteCount: Int
            do throws(OfflineRecordError) { (request, byteCount) = try OfflineStore.read(id.number, directory) } catch {
                // A removed file cannot be changed, and occupies no space.
                if error.isMissing { return 0 }
                throw HTTPError(.fileFailed, phase: .preparing, message: error.description)
            }
            if change(&request) { byteCount = try OfflineStore.write(request, directory) }
            return UInt64(byteCount) + request.body.storedByteCount
        }
    }

    private static func write(_ request: QueuedRequest, _ directory: RecordDirectory) throws(HTTPError) -> Int {
        let bytes = try encode(request)
        try HTTPError.storing { () throws(StorageError) in try directory.write(request.id.number, bytes) }
        return bytes.count
    }

    /// Removes a request and its body.
    func remove(_ id: OfflineID) async throws(HTTPError) {
        try await stored { (directory) throws(StorageError) in try directory.remove(id.number) }
    }

    /// Moves a damaged request to the directory `corrupt`.
    func setAside(_ id: OfflineID, _ recordError: OfflineRecordError) async -> OfflineEvent {
        await workers.run { [directory] in OfflineStore.finding(id.number, recordError, directory) }
    }

    private func stored<Value: Sendable>(_ body: @escaping @Sendable (RecordDirectory) throws(StorageError) -> Value)
        async throws(HTTPError) -> Value
    {
        try await owned { (directory) throws(HTTPError) in
            try HTTPError.storing { () throws(StorageError) in try body(directory) }
        }
    }

    /// Uses the directory, unless it was released.
    private func owned<Value: Sendable>(_ body: @escaping @Sendable (RecordDirectory) throws(HTTPError) -> Value)
        async throws(HTTPError) -> Value
    {
        try await workers.run { [self] () throws(HTTPError) in
            guard !isReleased.withLock({ $0 }) else { throw OfflineStore.closed }
            return try body(directory)
        }
    }

    // MARK: Bodies

    /// Returns the path of a request's record.
    func recordPath(_ id: OfflineID) -> String { directory.recordPath(id.number) }

    /// Returns the path of a request's body file in the queue's directory.
    func bodyPath(_ id: OfflineID) -> String { directory.bodyPath(id.number) }

    /// Creates the file of a request's body.
    func createBody(_ id: OfflineID) async throws(HTTPError) -> QueuedBodyWriter {
        let file = try await stored { (directory) throws(StorageError) in try directory.createBody(id.number) }
        return QueuedBodyWriter(file, in: directory, files, workers)
    }

    /// Removes the body of a request that is not stored. If the directory was released, its next owner removes it.
    func removeBody(_ id: OfflineID) async {
        try? await stored { (directory) throws(StorageError) in directory.removeBody(id.number) }
    }

    /// Records the last assigned number, and releases the directory.
    func close(lastNumber: UInt64) async {
        await workers.run { [self] in
            isReleased.withLock { $0 = true }
            try? directory.note(lastNumber)
            directory.release()
        }
    }
}

/// The reason why a record cannot be read.
enum OfflineRecordError: Error, CustomStringConvertible {
    /// A file operation failed.
    case storage(StorageError)
    /// The record is invalid.
    case record(RecordEnvelope.FormatError)

    /// Whether the record is damaged. One of a later version is not, and stays in place.
    var isDamage: Bool {
        switch self {
        case .storage, .record(.version): false
        case .record: true
        }
    }

    /// Whether the file does not exist.
    var isMissing: Bool { if case .storage(let error) = self { error.isMissingFile } else { false } }

    var description: String {
        switch self {
        case .storage(let error): error.description
        case .record(let recordError): recordError.description
        }
    }
}

/// A request in memory, without its fields, its body, and the response to it.
struct OfflineSummary: Sendable {
    let ticket: OfflineTicket
    let submitted: Int64
    /// The time from which ``expires`` counts: that of the submission, or of the last retry after the expiry.
    var started: Int64
    var expires: Int64
    /// ``expires`` on the clock that counts from the boot.
    let bootDeadline: BootDeadline?
    let bodyByteCount: UInt64
    let secretFields: [String]
    let isRepeatable: Bool
    var attempts: Int
    /// Whether the request is dead or uncertain.
    var isResting: Bool
    /// The number of bytes in the directory.
    var storedByteCount: UInt64

    /// The lifetime in milliseconds, which no retry changes.
    var lifetime: Int64 { max(0, expires.subtractingReportingOverflow(started).partialValue) }

    /// The time 2020-01-01: an earlier time of day shows that a clock was never set.
    private static let earliestPlausibleTime: Int64 = 1_577_836_800_000

    /// Returns the time of expiry in a process that finds the request. `now` counts from `boot`, `wall` (ms) from 1970.
    func deadline(now: MonotonicTime, boot: String?, wall: Int64) -> MonotonicTime {
        if let bootDeadline, bootDeadline.boot == boot {
            return min(bootDeadline.time, now.advanced(by: .milliseconds(lifetime)))
        }
        // Two times of day cannot be compared if one was never set.
        let isPlausible = min(started, wall) >= OfflineSummary.earliestPlausibleTime
        // A clock that was set back does not prolong the lifetime.
        let left = isPlausible ? min(expires.subtractingReportingOverflow(wall).partialValue, lifetime) : lifetime
        return now.advanced(by: .milliseconds(left))
    }

    /// Creates the summary of a request. `recordByteCount` is the length of its record.
    init(_ request: QueuedRequest, recordByteCount: Int) {
        ticket = OfflineTicket(request)
        (submitted, started) = (request.submitted, request.renewed ?? request.submitted)
        (expires, bootDeadline) = (request.expires, request.bootDeadline)
        (bodyByteCount, secretFields) = (request.body.byteCount, request.secretFields)
        isRepeatable = request.isRepeatable
        attempts = Int(request.attempts)
        isResting = request.stage.isResting
        storedByteCount = UInt64(recordByteCount) + request.body.storedByteCount
    }
}

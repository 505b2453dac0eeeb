import MartletCaching
import MartletCore
import MartletDiagnostics
import MartletHosts
import MartletStorage
import MartletTransport
import Synchronization
import SystemPackage

/// What of a queue outlives the process: written in the order in which it is told, by one thread. Nothing of it is cut short
/// when a task is cancelled.
final class OfflineStore: Sendable {
    /// What was found in a directory.
    struct Contents: Sendable {
        var summaries: [OfflineSummary] = []
        /// Those that were being sent when a process ended, and must not be sent again by themselves.
        var interrupted: [OfflineID] = []
        /// What was found that is no request.
        var findings: [OfflineEvent] = []
        /// The highest number that may have been given away.
        var lastNumber: UInt64 = 0
    }

    let files: any FileSystem
    private let folder: RecordFolder
    private let workers: BlockingWorkers
    /// Whether others may have the directory. Read and written by whoever has the worker.
    private let isReleased = Mutex(false)

    private init(_ folder: RecordFolder, _ workers: BlockingWorkers, _ files: any FileSystem) {
        self.folder = folder
        self.workers = workers
        self.files = files
    }

    // MARK: Opening

    /// Opens a directory, which is made where it is missing, and reads what is there.
    static func open(
        _ path: String, files: any FileSystem
    ) async throws(HTTPError) -> (OfflineStore, Contents) {
        let workers = BlockingWorkers(threadLimit: 1)
        let (folder, contents) = try await workers.run { () throws(HTTPError) in
            let folder = try OfflineStore.folder(path, files)
            return (folder, try OfflineStore.contents(of: folder))
        }
        return (OfflineStore(folder, workers, files), contents)
    }

    private static func folder(_ path: String, _ files: any FileSystem) throws(HTTPError) -> RecordFolder {
        let absolute = try HTTPError.storing { () throws(StorageError) in try WorkingFolder.absolute(path) }
        do throws(RecordFolder.Refusal) {
            return try RecordFolder(
                path: absolute, kind: "request", hasBodies: true, files: files)
        } catch {
            throw HTTPError(refusing: error, path: path, owner: "queue", contents: "requests")
        }
    }

    private static func contents(of folder: RecordFolder) throws(HTTPError) -> Contents {
        var contents = Contents()
        let numbers = try HTTPError.storing { () throws(StorageError) in try folder.numbers() }
        for number in numbers {
            do throws(OfflineRecordFault) {
                let (request, byteCount) = try read(number, folder)
                contents.summaries.append(OfflineSummary(request, recordByteCount: byteCount))
                if request.stage == .sending, !request.isRepeatable {
                    contents.interrupted.append(request.id)
                }
            } catch {
                contents.findings.append(finding(number, error, folder))
            }
        }
        contents.lastNumber = folder.lastNumber
        return contents
    }

    /// What is told of a record that cannot be read, which is moved out of the way.
    private static func finding(
        _ number: UInt64, _ fault: OfflineRecordFault, _ folder: RecordFolder
    ) -> OfflineEvent {
        let here = FilePath(folder.recordPath(number))
        guard case .record = fault else { return .leftAlone(path: here, reason: fault.description) }
        do throws(StorageError) {
            return .setAside(path: FilePath(try folder.setAside(number)), reason: fault.description)
        } catch {
            return .leftAlone(path: here, reason: "\(fault.description); \(error.description)")
        }
    }

    private static func read(
        _ number: UInt64, _ folder: RecordFolder
    ) throws(OfflineRecordFault) -> (FrozenRequest, Int) {
        let bytes: [UInt8]
        do throws(StorageError) {
            bytes = try folder.read(number, limit: FrozenRequestCodec.byteLimit)
        } catch {
            throw .storage(error)
        }
        do throws(RecordEnvelope.Fault) {
            let request = try FrozenRequestCodec.decode(bytes)
            guard request.id.number == number else { throw .field("number", offset: 0) }
            return (request, bytes.count)
        } catch {
            throw .record(error)
        }
    }

    // MARK: Requests

    /// Reads a request.
    func load(_ id: OfflineID) async throws(OfflineRecordFault) -> FrozenRequest {
        try await workers.run { [folder] () throws(OfflineRecordFault) in
            try OfflineStore.read(id.number, folder).0
        }
    }

    /// The bytes of a request's file.
    /// - Throws: Where they are more than can be read again, now or with the answer of a server beside them.
    func record(of request: FrozenRequest) async throws(HTTPError) -> [UInt8] {
        try await workers.run { () throws(HTTPError) in
            let bytes = try OfflineStore.encode(request)
            let limit = FrozenRequestCodec.byteLimit - OfflineDeadLetter.byteLimit
            guard bytes.count <= limit, (try? FrozenRequestCodec.decode(bytes)) != nil else {
                throw OfflineStore.tooLarge
            }
            return bytes
        }
    }

    private static var tooLarge: HTTPError {
        HTTPError(.invalidRequest, phase: .preparing, message: "the request's head is too large to be kept")
    }

    private static func encode(_ request: FrozenRequest) throws(HTTPError) -> [UInt8] {
        guard let bytes = try? FrozenRequestCodec.encode(request) else { throw tooLarge }
        return bytes
    }

    /// Writes a new request; returns when it is on the disk. Where that fails nothing of it is left.
    func add(_ id: OfflineID, _ record: [UInt8]) async throws(HTTPError) {
        try await stored { (folder) throws(StorageError) in try folder.add(id.number, record) }
    }

    /// Writes a request in place of what it was.
    func save(_ request: FrozenRequest) async throws(HTTPError) {
        _ = try await owned { (folder) throws(HTTPError) in try OfflineStore.write(request, folder) }
    }

    /// Reads a request and writes it as it is to be, with nothing in between.
    /// - Parameter change: Returns whether it is to be written.
    /// - Returns: How many bytes it has in the directory.
    @discardableResult
    func change(
        _ id: OfflineID, _ change: @escaping @Sendable (inout FrozenRequest) -> Bool
    ) async throws(HTTPError) -> UInt64 {
        try await owned { (folder) throws(HTTPError) in
            var request: FrozenRequest
            var byteCount: Int
            do throws(OfflineRecordFault) {
                (request, byteCount) = try OfflineStore.read(id.number, folder)
            } catch {
                // One that somebody took away has nothing to change, and takes no room.
                if error.isMissing { return 0 }
                throw HTTPError(.fileFailed, phase: .preparing, message: error.description)
            }
            if change(&request) { byteCount = try OfflineStore.write(request, folder) }
            return UInt64(byteCount) + request.body.storedByteCount
        }
    }

    @discardableResult
    private static func write(_ request: FrozenRequest, _ folder: RecordFolder) throws(HTTPError) -> Int {
        let bytes = try encode(request)
        try HTTPError.storing { () throws(StorageError) in try folder.write(request.id.number, bytes) }
        return bytes.count
    }

    /// Removes a request and its body.
    func remove(_ id: OfflineID) async throws(HTTPError) {
        try await stored { (folder) throws(StorageError) in try folder.remove(id.number) }
    }

    /// Moves a request that makes no sense out of the way.
    func setAside(_ id: OfflineID, _ fault: OfflineRecordFault) async -> OfflineEvent {
        await workers.run { [folder] in OfflineStore.finding(id.number, fault, folder) }
    }

    private func stored<Value: Sendable>(
        _ body: @escaping @Sendable (RecordFolder) throws(StorageError) -> Value
    ) async throws(HTTPError) -> Value {
        try await owned { (folder) throws(HTTPError) in
            try HTTPError.storing { () throws(StorageError) in try body(folder) }
        }
    }

    /// Does something to the directory, unless others may have it by now.
    private func owned<Value: Sendable>(
        _ body: @escaping @Sendable (RecordFolder) throws(HTTPError) -> Value
    ) async throws(HTTPError) -> Value {
        try await workers.run { [self] () throws(HTTPError) in
            guard !isReleased.withLock({ $0 }) else {
                throw HTTPError(
                    .sessionInvalidated, phase: .preparing, message: "the offline queue was closed")
            }
            return try body(folder)
        }
    }

    // MARK: Bodies

    /// Where a request is.
    func recordPath(_ id: OfflineID) -> String { folder.recordPath(id.number) }

    /// Where the body of a request is that is a file of its own.
    func bodyPath(_ id: OfflineID) -> String { folder.bodyPath(id.number) }

    /// Begins the file of a request's body.
    func createBody(_ id: OfflineID) async throws(HTTPError) -> FrozenBodyWriter {
        let file = try await stored { (folder) throws(StorageError) in try folder.createBody(id.number) }
        return FrozenBodyWriter(file, in: folder, files, workers)
    }

    /// Removes the file of a body whose request is not kept.
    func removeBody(_ id: OfflineID) async {
        // Where others have the directory they have removed it, or will.
        try? await stored { (folder) throws(StorageError) in folder.removeBody(id.number) }
    }

    // MARK: The end

    /// Notes the last number that was given away, and lets others have the directory.
    func close(lastNumber: UInt64) async {
        await workers.run { [self] in
            isReleased.withLock { $0 = true }
            try? folder.note(lastNumber)
            folder.release()
        }
    }
}

/// Why a record cannot be read.
enum OfflineRecordFault: Error, CustomStringConvertible {
    /// Its file cannot be.
    case storage(StorageError)
    /// It makes no sense.
    case record(RecordEnvelope.Fault)

    /// Whether there is no such file.
    var isMissing: Bool { if case .storage(let error) = self { error.isMissingFile } else { false } }

    var description: String {
        switch self {
        case .storage(let error): error.description
        case .record(let fault): fault.description
        }
    }
}

/// What is kept in memory of a request: all but its fields, its body, and the answer to it.
struct OfflineSummary: Sendable {
    /// What is to become of it.
    enum Stage: Sendable {
        case waiting
        case dead
        case uncertain
    }

    let ticket: OfflineTicket
    let submitted: Int64
    var expires: Int64
    /// ``expires`` on the clock that counts from the start of the computer.
    let bootDeadline: BootDeadline?
    let bodyByteCount: UInt64
    let secretFields: [String]
    let isRepeatable: Bool
    var attempts: Int
    var stage: Stage
    /// How many bytes it has in the directory.
    var storedByteCount: UInt64

    /// How long it was to live, in milliseconds.
    var lifetime: Int64 { max(0, expires.subtractingReportingOverflow(submitted).partialValue) }

    /// The time of day before which a clock was evidently not set: 2020-01-01.
    private static let earliestPlausibleTime: Int64 = 1_577_836_800_000

    /// The moment at which the request expires, in a process that finds it in its directory.
    /// - Parameters:
    ///   - boot: The start of the computer that `now` counts from.
    ///   - wall: The time of day, in milliseconds since 1970.
    func deadline(now: MonotonicTime, boot: String?, wall: Int64) -> MonotonicTime {
        if let bootDeadline, bootDeadline.boot == boot {
            return min(bootDeadline.time, now.advanced(by: .milliseconds(lifetime)))
        }
        // Of two times of day, one of which was never set, nothing follows.
        guard min(submitted, wall) >= OfflineSummary.earliestPlausibleTime else {
            return now.advanced(by: .milliseconds(lifetime))
        }
        // A clock that was set back makes no request live longer than it was to.
        let left = min(expires.subtractingReportingOverflow(wall).partialValue, lifetime)
        return now.advanced(by: .milliseconds(left))
    }

    /// A summary.
    /// - Parameter recordByteCount: How many bytes its record has.
    init(_ request: FrozenRequest, recordByteCount: Int) {
        ticket = OfflineTicket(request)
        submitted = request.submitted
        expires = request.expires
        bootDeadline = request.bootDeadline
        bodyByteCount = request.body.byteCount
        secretFields = request.secretFields
        isRepeatable = request.isRepeatable
        attempts = Int(request.attempts)
        stage =
            switch request.stage {
            case .waiting, .sending: .waiting
            case .dead: .dead
            case .uncertain: .uncertain
            }
        storedByteCount = UInt64(recordByteCount) + request.body.storedByteCount
    }
}

extension Int64 {
    /// A moment, in milliseconds, so many later; the latest there is where that is beyond it.
    func advanced(byMilliseconds count: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(count)
        return overflows ? .max : sum
    }
}

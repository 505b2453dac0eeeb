import MartletTransport
import Synchronization

/// What happened at a test origin: counts, requests, and the bytes that scripts received; all of it can be
/// awaited.
public final class OriginLedger: Sendable {
    private struct Transcript {
        var bytes: [UInt8] = []
        var isComplete = false
    }

    private struct State {
        var counts = OriginCounts()
        var requests: [RecordedRequest] = []
        var transcripts: [Int: Transcript] = [:]
        var notes: [String] = []
        var waiters: [Int: Waiting] = [:]
        var lastWaiter = 0
    }

    private struct Waiting {
        let isMet: @Sendable (borrowing State) -> Bool
        let event: OneShot<Void>
    }

    /// Guards everything; touched by connections' tasks, the event loop's thread and the test.
    private let state = Mutex(State())
    private let recordLimit: Int

    init(recordLimit: Int) { self.recordLimit = max(0, recordLimit) }

    // MARK: Looking

    /// What was counted so far.
    public var counts: OriginCounts { state.withLock { $0.counts } }

    /// The heads of the requests so far, in the order they came; the newest only, where there were more than
    /// ``OriginOptions/recordLimit``.
    public var requests: [RecordedRequest] { state.withLock { Array($0.requests.suffix(recordLimit)) } }

    /// What was out of order: bytes that a script did not expect, requests that were not HTTP, handlers that
    /// threw.
    public var notes: [String] { state.withLock { $0.notes } }

    /// The bytes that a script's connection received so far.
    /// - Parameter connection: The connection's number, from 1.
    public func transcript(ofConnection connection: Int) -> [UInt8] {
        state.withLock { $0.transcripts[connection]?.bytes ?? [] }
    }

    // MARK: Awaiting

    /// Waits until at least so many requests came.
    /// - Parameters:
    ///   - count: How many, since the origin's start.
    ///   - limit: How long to wait at most.
    /// - Returns: The requests recorded by then.
    /// - Throws: ``OriginError/timedOut(waitingFor:)``, or `CancellationError`.
    @discardableResult
    public func waitForRequests(
        count: Int, within limit: Duration = .seconds(120)
    ) async throws -> [RecordedRequest] {
        try await wait(for: "\(count) requests", within: limit) { $0.counts.requests >= count }
        return requests
    }

    /// Waits until at least so many connections were accepted; else as ``waitForRequests(count:within:)``.
    public func waitForConnections(count: Int, within limit: Duration = .seconds(120)) async throws {
        try await wait(for: "\(count) connections", within: limit) { $0.counts.connections >= count }
    }

    /// Waits until at most so many connections are open; else as ``waitForRequests(count:within:)``.
    public func waitForOpenConnections(atMost count: Int, within limit: Duration = .seconds(120)) async throws
    {
        try await wait(for: "at most \(count) open connections", within: limit) {
            $0.counts.openConnections <= count
        }
    }

    /// Waits until what was counted meets a condition; else as ``waitForRequests(count:within:)``.
    public func waitForCounts(
        within limit: Duration = .seconds(120), _ condition: @escaping @Sendable (OriginCounts) -> Bool
    ) async throws {
        try await wait(for: "the counts to meet a condition", within: limit) { condition($0.counts) }
    }

    /// Waits until a script's connection is over.
    /// - Returns: All bytes it received.
    /// - Throws: As ``waitForRequests(count:within:)``.
    @discardableResult
    public func waitForTranscript(
        ofConnection connection: Int, within limit: Duration = .seconds(120)
    ) async throws -> [UInt8] {
        try await wait(for: "the end of connection \(connection)", within: limit) {
            $0.transcripts[connection]?.isComplete == true
        }
        return transcript(ofConnection: connection)
    }

    /// Waits until a script's connection has received at least so many bytes.
    /// - Returns: All bytes it received by then.
    /// - Throws: As ``waitForRequests(count:within:)``.
    @discardableResult
    public func waitForTranscript(
        ofConnection connection: Int, byteCount: Int, within limit: Duration = .seconds(120)
    ) async throws -> [UInt8] {
        try await wait(for: "\(byteCount) bytes on connection \(connection)", within: limit) {
            ($0.transcripts[connection]?.bytes.count ?? 0) >= byteCount
        }
        return transcript(ofConnection: connection)
    }

    private func wait(
        for awaited: String, within limit: Duration,
        until isMet: @escaping @Sendable (borrowing State) -> Bool
    ) async throws {
        let event = OneShot<Void>()
        let key = state.withLock { state -> Int? in
            if isMet(state) { return nil }
            state.lastWaiter += 1
            state.waiters[state.lastWaiter] = Waiting(isMet: isMet, event: event)
            return state.lastWaiter
        }
        guard let key else { return }
        defer { state.withLock { _ = $0.waiters.removeValue(forKey: key) } }
        guard try await !event.isFulfilled(within: limit) else { return }
        throw OriginError.timedOut(
            waitingFor: "\(awaited); there were \(counts.connections) connections "
                + "(\(counts.openConnections) open), \(counts.requests) requests, "
                + "\(counts.bytesReceived) bytes")
    }

    // MARK: Writing

    private func update<Value: Sendable>(_ change: (inout State) -> Value) -> Value {
        let (value, met) = state.withLock { state -> (Value, [OneShot<Void>]) in
            let value = change(&state)
            if state.waiters.isEmpty { return (value, []) }
            let met = state.waiters.filter { $0.value.isMet(state) }
            for key in met.keys { state.waiters.removeValue(forKey: key) }
            return (value, met.values.map(\.event))
        }
        for event in met { event.fulfil(()) }
        return value
    }

    /// Counts a connection; its number.
    func connectionOpened() -> Int {
        update { state in
            state.counts.connections += 1
            state.counts.openConnections += 1
            return state.counts.connections
        }
    }

    func connectionClosed(_ number: Int) {
        update { state in
            state.counts.openConnections -= 1
            state.transcripts[number]?.isComplete = true
        }
    }

    func handshakeFailed() { update { $0.counts.failedHandshakes += 1 } }

    func received(_ count: Int) { update { $0.counts.bytesReceived += UInt64(count) } }

    func sent(_ count: Int) { update { $0.counts.bytesSent += UInt64(count) } }

    func responded() { update { $0.counts.responses += 1 } }

    func record(_ request: RecordedRequest) {
        update { state in
            state.counts.requests += 1
            state.requests.append(request)
            // Dropped in halves, so that a long run costs neither memory nor a shift for every request.
            if state.requests.count > 2 * recordLimit {
                state.requests.removeFirst(state.requests.count - recordLimit)
            }
        }
    }

    /// The most notes kept.
    private static let noteLimit = 1000

    func note(_ text: String) {
        update { state in if state.notes.count < OriginLedger.noteLimit { state.notes.append(text) } }
    }

    func beginTranscript(ofConnection number: Int) { update { $0.transcripts[number] = Transcript() } }

    /// The most bytes that a transcript keeps: enough for any script, and a bound on an upload to one.
    private static let transcriptLimit = 16 << 20

    func transcribe(_ bytes: [UInt8], ofConnection number: Int) {
        update { state in
            let room = OriginLedger.transcriptLimit - (state.transcripts[number]?.bytes.count ?? 0)
            state.transcripts[number]?.bytes += bytes.prefix(max(0, room))
        }
    }
}

extension OneShot<Void> {
    /// Waits until it is fulfilled, or for so long.
    /// - Returns: Whether it was fulfilled.
    func isFulfilled(within limit: Duration) async throws -> Bool {
        let loop = try EventLoop.shared.get()
        switch await waitUnlessCancelled(until: MonotonicTime.now().advanced(by: limit), on: loop) {
        case .value: return true
        case .interrupted: throw CancellationError()
        case .timedOut: return false
        }
    }
}

/// What a test origin has counted so far.
public struct OriginCounts: Sendable, Hashable {
    /// Connections accepted since the start; one whose TLS handshake failed counts too.
    public internal(set) var connections = 0
    /// Connections open now.
    public internal(set) var openConnections = 0
    /// TLS handshakes that failed, as when the client refused the certificate.
    public internal(set) var failedHandshakes = 0
    /// Request heads received.
    public internal(set) var requests = 0
    /// Responses sent to their last byte.
    public internal(set) var responses = 0
    /// Bytes received, heads included and TLS's own excluded.
    public internal(set) var bytesReceived: UInt64 = 0
    /// Bytes handed to the system to send; counted as the bytes received.
    public internal(set) var bytesSent: UInt64 = 0
}

/// The head of a request that a test origin received.
public struct RecordedRequest: Sendable, Hashable {
    /// The connection it came on, from 1.
    public let connectionNumber: Int
    /// Its place on that connection, from 1.
    public let requestNumber: Int
    /// The method, as sent.
    public let method: String
    /// The request target, as sent.
    public let target: String
    /// `1.1` or `1.0`.
    public let version: String
    /// The fields, as sent.
    public let fields: OriginFields
}

/// What ``OriginHandler/upload`` tells of a body, in JSON.
public struct UploadReport: Codable, Sendable, Hashable {
    /// The body's length in bytes.
    public var length: UInt64
    /// Its CRC-32 as eight hexadecimal digits; see ``CRC32``.
    public var crc32: String

    /// Reads a body to its end, holding no more than a piece of it.
    init(_ body: OriginRequestBody) async throws {
        length = 0
        var checksum = CRC32()
        for try await chunk in body {
            length += UInt64(chunk.count)
            checksum.update(with: chunk)
        }
        crc32 = checksum.text
    }
}

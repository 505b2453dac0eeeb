/// The counts and requests of a test origin, and the bytes that scripts received. Tests can wait for all of them.
public final class OriginRecorder: Sendable {
    private struct State {
        var counts = OriginCounts()
        var requests: [RecordedRequest] = []
        var bodyByteCount = 0
        /// The number of the oldest request whose body is recorded; earlier ones have none.
        var oldestBody = 0
        var transcripts: [Int: (bytes: [UInt8], isComplete: Bool)] = [:]
        var notes: [String] = []
    }

    private let state = AwaitableState(State())
    private let recordLimit: Int
    private let bodyLimit: Int

    init(recordLimit: Int, bodyLimit: Int) {
        (self.recordLimit, self.bodyLimit) = (max(0, recordLimit), max(0, bodyLimit))
    }

    // MARK: Inspecting

    /// The counts so far.
    public var counts: OriginCounts { state.read { $0.counts } }

    /// The requests so far, in the order of their arrival; the newest ones, if there were more than
    /// ``OriginLimits/recordLimit``.
    public var requests: [RecordedRequest] { state.read { Array($0.requests.suffix(recordLimit)) } }

    /// Descriptions of unexpected bytes in a script, invalid requests and errors thrown by handlers; at most 1000.
    public var problems: [String] { state.read { $0.notes } }

    /// The bytes that a script's connection received so far, at most 16 MiB.
    /// - Parameter connection: The connection's number, from 1.
    public func transcript(ofConnection connection: Int) -> [UInt8] {
        state.read { $0.transcripts[connection]?.bytes ?? [] }
    }

    // MARK: Awaiting

    /// Waits until at least a number of requests arrived.
    /// - Parameters:
    ///   - count: The number of requests since the origin's start.
    ///   - limit: The maximum wait; 120 s by default.
    /// - Returns: The requests recorded by then.
    /// - Throws: ``OriginError/timedOut(waitingFor:)``, or `CancellationError`.
    @discardableResult public func waitForRequests(count: Int, within limit: Duration = .seconds(120)) async throws
        -> [RecordedRequest]
    {
        try await wait(for: "\(count) requests", within: limit) { $0.counts.requests >= count }
        return requests
    }

    /// Waits until at least a number of connections were accepted; see ``waitForRequests(count:within:)``.
    public func waitForConnections(count: Int, within limit: Duration = .seconds(120)) async throws {
        try await wait(for: "\(count) connections", within: limit) { $0.counts.connections >= count }
    }

    /// Waits until at most a number of connections are open; see ``waitForRequests(count:within:)``.
    public func waitForOpenConnections(atMost count: Int, within limit: Duration = .seconds(120)) async throws {
        try await wait(for: "at most \(count) open connections", within: limit) { $0.counts.openConnections <= count }
    }

    /// Waits until the counts meet a condition; see ``waitForRequests(count:within:)``.
    public func waitForCounts(
        within limit: Duration = .seconds(120), _ condition: @escaping @Sendable (OriginCounts) -> Bool
    ) async throws { try await wait(for: "the counts to meet a condition", within: limit) { condition($0.counts) } }

    /// Waits until a script's connection has received at least a number of bytes, or by default, has ended.
    /// - Returns: All bytes that it received by then.
    /// - Throws: The errors of ``waitForRequests(count:within:)``.
    @discardableResult public func waitForTranscript(
        ofConnection connection: Int, byteCount: Int? = nil, within limit: Duration = .seconds(120)
    ) async throws -> [UInt8] {
        let awaited = byteCount.map { "\($0) bytes on connection" } ?? "the end of connection"
        try await wait(for: "\(awaited) \(connection)", within: limit) { state in
            let transcript = state.transcripts[connection] ?? (bytes: [], isComplete: false)
            return byteCount.map { transcript.bytes.count >= $0 } ?? transcript.isComplete
        }
        return transcript(ofConnection: connection)
    }

    private func wait(for awaited: String, within limit: Duration, until isMet: @escaping @Sendable (State) -> Bool)
        async throws
    {
        guard try await !state.wait(within: limit, until: isMet) else { return }
        let counts = counts
        throw OriginError.timedOut(
            waitingFor: "\(awaited); there were \(counts.connections) connections "
                + "(\(counts.openConnections) open), \(counts.requests) requests, \(counts.bytesReceived) bytes")
    }

    // MARK: Recording

    func count<Value: Sendable>(_ change: (inout OriginCounts) -> Value) -> Value {
        state.update { change(&$0.counts) }
    }

    func connectionClosed(_ number: Int) {
        state.update { state in
            state.counts.openConnections -= 1
            state.transcripts[number]?.isComplete = true
        }
    }

    /// Records a request.
    /// - Returns: The request's number, for recording its body.
    func record(_ request: RecordedRequest) -> Int {
        state.update { state in
            state.counts.requests += 1
            state.requests.append(request)
            // Many are dropped at a time, since each removal moves the remaining ones.
            if state.requests.count > 2 * recordLimit {
                let dropped = state.requests.prefix(state.requests.count - recordLimit)
                state.bodyByteCount -= dropped.reduce(0) { $0 + $1.body.count }
                state.requests.removeFirst(dropped.count)
            }
            return state.counts.requests - 1
        }
    }

    /// Records bytes of a request's body, up to the limit.
    func record(_ bytes: [UInt8], of number: Int) {
        state.update { state in
            let first = state.counts.requests - state.requests.count
            guard number >= first else { return }
            state.requests[number - first].bodyByteCount += UInt64(bytes.count)
            state.oldestBody = max(state.oldestBody, first)
            guard number >= state.oldestBody else { return }
            while state.bodyByteCount + bytes.count > bodyLimit, state.oldestBody < number {
                state.bodyByteCount -= state.requests[state.oldestBody - first].body.count
                state.requests[state.oldestBody - first].body = []
                state.oldestBody += 1
            }
            // Bodies of newer requests that are received at the same time are kept.
            let part = bytes.prefix(bodyLimit - state.bodyByteCount)
            state.requests[number - first].body += part
            state.bodyByteCount += part.count
        }
    }

    private static let noteLimit = 1000

    func note(_ text: String) {
        state.update { state in if state.notes.count < OriginRecorder.noteLimit { state.notes.append(text) } }
    }

    func beginTranscript(ofConnection number: Int) { state.update { $0.transcripts[number] = ([], false) } }

    private static let transcriptLimit = 16 << 20

    func transcribe(_ bytes: [UInt8], ofConnection number: Int) {
        state.update { state in
            let room = OriginRecorder.transcriptLimit - (state.transcripts[number]?.bytes.count ?? 0)
            state.transcripts[number]?.bytes += bytes.prefix(max(0, room))
        }
    }
}

/// The counts of a test origin so far.
public struct OriginCounts: Sendable, Hashable {
    /// The number of connections accepted since the start, including those whose TLS handshake failed.
    public internal(set) var connections = 0
    /// The number of open connections.
    public internal(set) var openConnections = 0
    /// The number of failed TLS handshakes, for example because the client rejected the certificate.
    public internal(set) var failedHandshakes = 0
    /// The number of received request heads.
    public internal(set) var requests = 0
    /// The number of responses that were sent completely.
    public internal(set) var responses = 0
    /// The number of received bytes, including heads and without the overhead of TLS.
    public internal(set) var bytesReceived: UInt64 = 0
    /// The number of bytes passed to the system to send, counted like the received ones.
    public internal(set) var bytesSent: UInt64 = 0
}

import MartletCore

/// A state machine that decides when to reconnect a stream of server-sent events (WHATWG HTML §9.2.3): after its end
/// and after a failure to connect. Another response than an event stream ends the stream.
package struct EventStreamMachine: Sendable {
    /// The decision on a response.
    package enum Opening: Hashable, Sendable {
        /// Read the response: it is an event stream.
        case read
        /// End the stream without an error: the server has no more events.
        case finish
        /// Fail, because the status is not 200.
        case rejectStatus(Int)
        /// Fail, because the content type is not `text/event-stream`.
        case rejectContentType(String)
    }

    /// The next step.
    package enum Step: Hashable, Sendable {
        /// Reconnect after a delay.
        case reconnect(after: Duration)
        /// End the stream without an error.
        case finish
        /// End the stream with the reported error.
        case fail
    }

    private let bounds: ClosedRange<Duration>
    private let backoffLimit: Duration
    private let failureLimit: Int?
    private let reconnects: Bool
    private var reconnectionTime: Duration
    private var failureCount = 0
    /// The current identifier; empty for none.
    package private(set) var lastEventID: String

    /// The maximum size of an identifier that is sent back, in bytes: a field size that servers commonly accept.
    private static let identifierLimit = 8 * 1024

    /// Creates the machine of a stream that has not been connected.
    package init(_ options: EventStreamOptions) {
        let bounds = options.reconnectionTimeBounds
        self.bounds = bounds.lowerBound.bounded...bounds.upperBound.bounded
        (backoffLimit, reconnectionTime) = (options.backoffLimit.bounded, options.reconnectionTime.bounded)
        (failureLimit, reconnects, lastEventID) = (options.failureLimit, options.reconnects, options.lastEventID)
    }

    /// The value of `Last-Event-ID`; `nil` without an identifier, and for an identifier that cannot be sent in a field.
    package var lastEventIDField: String? {
        let bytes = lastEventID.utf8
        guard !bytes.isEmpty, bytes.count <= EventStreamMachine.identifierLimit,
            bytes.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 })
        else { return nil }
        return lastEventID
    }

    /// Handles the head of a response.
    package mutating func opened(status: Int, contentType: String?) -> Opening {
        if status == 204 { return .finish }
        guard status == 200 else { return .rejectStatus(status) }
        guard let contentType, MediaType(contentType)?.essence == "text/event-stream" else {
            return .rejectContentType(String((contentType ?? "").prefix(100)))
        }
        failureCount = 0
        return .read
    }

    /// Handles the latest values of the stream's `id` and `retry` fields.
    package mutating func read(lastEventID: String, retryMilliseconds: UInt64?) {
        self.lastEventID = lastEventID
        guard let retryMilliseconds else { return }
        let asked = Duration.milliseconds(Int64(clamping: min(retryMilliseconds, 1 << 50)))
        reconnectionTime = min(max(asked, bounds.lowerBound), bounds.upperBound)
    }

    /// Handles the regular end of the stream: its body is complete.
    package mutating func ended() -> Step { reconnects ? .reconnect(after: reconnectionTime) : .finish }

    /// Handles a failure to connect, or a broken stream.
    /// - Parameters:
    ///   - isTransient: Whether a retry could succeed.
    ///   - jitter: A random number from 0 to 1, so that clients which lost the server together reconnect one by one.
    package mutating func failed(isTransient: Bool, jitter: Double) -> Step {
        guard isTransient, reconnects else { return .fail }
        failureCount += 1
        if let failureLimit, failureCount >= failureLimit { return .fail }
        let limit = max(backoffLimit, reconnectionTime)
        var grown = reconnectionTime
        for _ in 1..<max(1, min(failureCount, 64)) where grown < limit { grown = grown * 2 }
        let most = min(grown, limit)
        return .reconnect(after: reconnectionTime + (most - reconnectionTime) * min(max(jitter, 0), 1))
    }
}

/// A reader that runs the connections of a stream of events, one after the other, as its machine decides.
struct EventStreamReader: Sendable {
    let session: HTTPSession
    let target: HTTPTargetForm
    let query: ParameterValue
    let body: HTTPBody
    let headers: HTTPHeaders
    let options: EventStreamOptions

    /// Reads until the stream ends, or no more events are requested.
    func read(into events: Handoff<ServerSentEvent>) async {
        var machine = EventStreamMachine(options)
        var isReconnection = false
        do {
            while true {
                let step: EventStreamMachine.Step
                var retryAfter = Duration.zero
                do { step = try await connect(&machine, events) ? machine.ended() : .finish } catch let error
                    as HTTPError
                {
                    // An invalidation between two connections has the same effect as one during a connection.
                    if isReconnection, error.code == .sessionInvalidated { throw CancellationError() }
                    step = machine.failed(isTransient: EventStreamReader.isTransient(error), jitter: .random(in: 0...1))
                    if step == .fail { throw error }
                    retryAfter = min(error.retryAfter ?? .zero, options.reconnectionTimeBounds.upperBound)
                }
                guard case .reconnect(let delay) = step else { break }
                try await options.sleep(max(delay, retryAfter))
                isReconnection = true
            }
            events.finish()
        } catch { events.finish(throwing: error) }
    }

    /// Runs one connection, from its request to the end of its body.
    /// - Returns: Whether the body is complete; `false` if the server has no more events, or no more are requested.
    private func connect(_ machine: inout EventStreamMachine, _ events: Handoff<ServerSentEvent>) async throws -> Bool {
        var headers = headers
        if options.lastEventID != machine.lastEventID || headers["Last-Event-ID"] == nil {
            headers["Last-Event-ID"] = machine.lastEventIDField
        }
        // The session's validator is for other responses. An error of this validator has the beginning of the body.
        let validator = options.request.validator ?? .status(200, 204)
        return try await session.stream(
            target, query: query, body: body, headers: headers, options: options.request, validate: validator
        ) { response, body in
            switch machine.opened(status: response.status.code, contentType: response.headers[.contentType]) {
            case .read: break
            case .finish: return false
            case .rejectStatus(let status):
                throw body.reader.rejection(
                    .unacceptableStatus, "the status is \(status) instead of 200: the response is not an event stream")
            case .rejectContentType(let type):
                let found = type.isEmpty ? "missing" : "“\(type)”"
                throw body.reader.rejection(
                    .unacceptableContentType, "the content type is \(found) instead of text/event-stream")
            }
            var pass = ParsedBody(
                body,
                ServerSentEventParser(
                    lastEventID: machine.lastEventID, limit: options.eventLimit.bytes, decoder: PartDecoder(body)))
            defer {
                machine.read(lastEventID: pass.parser.lastEventID, retryMilliseconds: pass.parser.retryMilliseconds)
            }
            while let event = try await pass.next() { guard await events.give(event) else { return false } }
            return true
        }
    }

    /// Whether a reconnection, which has its own timeouts and descriptors, could succeed.
    static func isTransient(_ error: HTTPError) -> Bool {
        if error.code == .unacceptableStatus { return [429, 502, 503, 504].contains(error.status) }
        return error.isTransient || error.code == .timedOut || error.code == .systemFailed
    }
}

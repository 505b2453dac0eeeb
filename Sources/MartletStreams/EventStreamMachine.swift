import MartletContent
import MartletCore
import HTTPTypes
import MartletTransport

/// Decides when a stream of server-sent events is connected again, with which identifier, and when it is over
/// (WHATWG HTML §9.2.3).
///
/// An end, or a fault of the network, is followed by another connection; a response that is not an event stream ends it.
package struct EventStreamMachine: Sendable {
    /// What to make of a response.
    package enum Opening: Hashable, Sendable {
        /// It is an event stream: read it.
        case read
        /// The server has no more events: the stream ends without an error.
        case finish
        /// The status is not 200.
        case refuseStatus(Int)
        /// The content type is not `text/event-stream`.
        case refuseContentType(String)
    }

    /// What to do next.
    package enum Step: Hashable, Sendable {
        /// Connect again after so long.
        case reconnect(after: Duration)
        /// The stream is over.
        case finish
        /// The stream is over, because of the fault just reported.
        case fail
    }

    private let bounds: ClosedRange<Duration>
    private let backoffLimit: Duration
    private let failureLimit: Int?
    private let reconnects: Bool
    private var reconnectionTime: Duration
    private var failureCount = 0
    /// The identifier in force; empty for none.
    package private(set) var lastEventID: String

    /// The longest identifier that is sent back, in bytes: what servers commonly take as a field.
    private static let identifierLimit = 8 * 1024

    /// The machine of a stream that has not been connected.
    package init(_ options: EventStreamOptions) {
        let bounds = options.reconnectionTimeBounds
        self.bounds = bounds.lowerBound.bounded...bounds.upperBound.bounded
        backoffLimit = options.backoffLimit.bounded
        failureLimit = options.failureLimit
        reconnects = options.reconnects
        reconnectionTime = options.reconnectionTime.bounded
        lastEventID = options.lastEventID
    }

    /// What `Last-Event-ID` says; `nil` for no field. An identifier that no field can hold is not sent.
    package var lastEventIDField: String? {
        let bytes = lastEventID.utf8
        guard !bytes.isEmpty, bytes.count <= EventStreamMachine.identifierLimit,
            bytes.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 })
        else { return nil }
        return lastEventID
    }

    /// A response has come.
    package mutating func opened(status: Int, contentType: String?) -> Opening {
        if status == 204 { return .finish }
        guard status == 200 else { return .refuseStatus(status) }
        guard let contentType, MediaType(contentType)?.essence == "text/event-stream" else {
            return .refuseContentType(String((contentType ?? "").prefix(100)))
        }
        failureCount = 0
        return .read
    }

    /// Bytes of the stream were read: what they said last.
    package mutating func read(lastEventID: String, retryMilliseconds: UInt64?) {
        self.lastEventID = lastEventID
        guard let retryMilliseconds else { return }
        let asked = Duration.milliseconds(Int64(clamping: min(retryMilliseconds, 1 << 50)))
        reconnectionTime = min(max(asked, bounds.lowerBound), bounds.upperBound)
    }

    /// The stream has ended as a complete body.
    package mutating func ended() -> Step { reconnects ? .reconnect(after: reconnectionTime) : .finish }

    /// Connecting failed, or the stream broke.
    /// - Parameters:
    ///   - isTransient: Whether another attempt may fare better.
    ///   - jitter: A number from 0 to 1 drawn at random, so that clients which a server has lost together do not come back
    ///     together.
    package mutating func failed(isTransient: Bool, jitter: Double) -> Step {
        guard isTransient, reconnects else { return .fail }
        failureCount += 1
        if let failureLimit, failureCount >= failureLimit { return .fail }
        var grown = reconnectionTime
        let limit = max(backoffLimit, reconnectionTime)
        for _ in 1..<max(2, min(failureCount, 64)) where failureCount > 1 && grown < limit {
            grown = grown * 2
        }
        let most = min(grown, limit)
        return .reconnect(after: reconnectionTime + (most - reconnectionTime) * min(max(jitter, 0), 1))
    }
}

/// Runs the connections of a stream of events, one after the other, as its machine decides.
struct EventStreamReader: Sendable {
    let session: HTTPSession
    let request: HTTPRequest
    let body: HTTPBody
    let options: EventStreamOptions

    /// How one connection ended where it did not throw.
    private enum End: Sendable {
        case complete
        case noMoreEvents
        case isNotWanted
    }

    /// Reads until the stream is over, or nobody takes its events any more.
    func read(into relay: EventRelay<ServerSentEvent>) async {
        var machine = EventStreamMachine(options)
        do {
            while true {
                let step: EventStreamMachine.Step
                do {
                    switch try await connect(&machine, relay) {
                    case .complete: step = machine.ended()
                    case .noMoreEvents, .isNotWanted: step = .finish
                    }
                } catch let error as HTTPError {
                    step = machine.failed(
                        isTransient: EventStreamReader.isTransient(error), jitter: .random(in: 0...1))
                    if step == .fail { throw error }
                }
                guard case .reconnect(let delay) = step else { break }
                try await options.sleep(delay)
            }
            relay.finish()
        } catch {
            relay.finish(throwing: error)
        }
    }

    /// One connection, from its request to the end of its body.
    private func connect(
        _ machine: inout EventStreamMachine, _ relay: EventRelay<ServerSentEvent>
    ) async throws -> End {
        var request = request
        if let name = HTTPField.Name("Last-Event-ID"),
            options.lastEventID != machine.lastEventID || request.headerFields[name] == nil
        {
            request.headerFields[name] = machine.lastEventIDField
        }
        // Which answers are event streams, the machine says; a session's word is about other answers.
        let validator = options.request.validator ?? .anything
        return try await session.stream(request, body: body, options: options.request, validate: validator) {
            response, body in
            switch machine.opened(
                status: response.status.code, contentType: response.headerFields[.contentType])
            {
            case .read: break
            case .finish: return .noMoreEvents
            case .refuseStatus(let status):
                throw body.reader.refusal(
                    .unacceptableStatus,
                    "the status is \(status), and not 200: the response is no event stream")
            case .refuseContentType(let type):
                let found = type.isEmpty ? "missing" : "“\(type)”"
                throw body.reader.refusal(
                    .unacceptableContentType, "the content type is \(found), and not text/event-stream")
            }
            var parser = ServerSentEventParser(
                lastEventID: machine.lastEventID, limit: options.eventLimit.bytes)
            while let piece = try await body.reader.next() {
                parser.feed(piece)
                do throws(ServerSentEventParser.TooLarge) {
                    while let event = try parser.next() {
                        guard await relay.give(event) else { return .isNotWanted }
                    }
                } catch {
                    throw body.reader.limitExceeded(
                        "an event is larger than the limit of \(error.limit) bytes")
                }
                machine.read(lastEventID: parser.lastEventID, retryMilliseconds: parser.retryMilliseconds)
            }
            return .complete
        }
    }

    /// Whether connecting again may help. Each connection has a total clock and descriptors of its own.
    static func isTransient(_ error: HTTPError) -> Bool {
        error.isTransient || error.code == .timedOut || error.code == .systemFailed
    }
}

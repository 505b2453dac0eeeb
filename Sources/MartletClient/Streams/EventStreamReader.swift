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
            options.lastEventID != machine.lastEventID
                || request.headerFields[name] == nil
        {
            request.headerFields[name] = machine.lastEventIDField
        }
        // Which answers are event streams, the machine says; a session's word is about other answers.
        let validator = options.request.validator ?? .anything
        return try await session.stream(
            request, body: body, options: options.request, validate: validator
        ) { response, body in
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
                    .unacceptableContentType,
                    "the content type is \(found), and not text/event-stream")
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
                machine.read(
                    lastEventID: parser.lastEventID, retryMilliseconds: parser.retryMilliseconds)
            }
            return .complete
        }
    }

    /// Whether connecting again may help. Each connection has a total clock and descriptors of its own.
    static func isTransient(_ error: HTTPError) -> Bool {
        error.isTransient || error.code == .timedOut || error.code == .systemFailed
    }
}

import FoundationEssentials
import HTTPTypes
import MartletTransport
import MartletWire

/// Serves HTTP on one connection of the test origin, until either side ends it.
struct OriginConnection: Sendable {
    private let channel: OriginChannel
    private let handler: OriginHandler
    private let service: OriginService
    private let peer: OriginPeer
    private let reader: RequestReader
    private let departure: @Sendable () -> Void

    private enum Outcome {
        case linger
        case fault(OriginFault.Kind)

        static let close = Outcome.fault(.close)
    }

    /// - Parameter departure: Called when the client disconnects while a handler runs.
    init(
        _ channel: OriginChannel, _ handler: OriginHandler, _ service: OriginService, _ peer: OriginPeer,
        departure: @escaping @Sendable () -> Void
    ) {
        (self.channel, self.handler, self.service, self.peer) = (channel, handler, service, peer)
        self.departure = departure
        reader = RequestReader(channel: channel) { [weak channel] in channel?.observeDeparture(departure) }
    }

    /// Serves one request after the other; the channel is closed afterwards.
    func serve() async {
        var number = 1
        while true {
            switch await serveRequest(number) {
            case nil: number += 1
            case .linger: return await channel.closeLingering()
            case .fault(.close): return channel.stream.close()
            case .fault(.cut): return channel.cut()
            case .fault(.reset): return channel.stream.reset()
            case .fault(.stall):
                // Records the rest of the body.
                await reader.drain(limit: .max)
                await channel.discard()
                return channel.stream.close()
            }
        }
    }

    /// Serves one request.
    /// - Returns: The end of the connection, or `nil` if it continues.
    private func serveRequest(_ number: Int) async -> Outcome? {
        let (head, body): (RequestHead, OriginRequestBody)
        do {
            guard let next = try await reader.nextHead() else { return .close }
            (head, body) = next
        } catch let error as WireError {
            note("\(error)")
            return await reject(error)
        } catch { return .close }
        let recorded = RecordedRequest(head, number: number, connection: peer)
        reader.startRecording(service.recorder.record(recorded))
        let request = OriginRequest(recorded, body: body)
        if reader.isComplete { channel.observeDeparture(departure) }
        var served = ServedRequest(method: request.method, target: request.target)
        let start = ContinuousClock.now
        let result: Result<Bool, any Error>
        do {
            let response = try await response(to: request)
            result = .success(try await send(response, to: request, head.version, &served))
        } catch { result = .failure(error) }
        if let log = service.log {
            served.duration = ContinuousClock.now - start
            await log(served)
        }
        do {
            let persists = try result.get()
            service.recorder.count { $0.responses += 1 }
            guard persists else { return reader.isComplete && !channel.hasUnread ? .close : .linger }
            return await reader.drain(limit: service.limits.unreadBodyLimit) ? nil : .linger
        } catch let fault as OriginFault { return .fault(fault.kind) } catch {
            if !(error is CancellationError) { note("\(error)") }
            return .fault(.cut)
        }
    }

    private func note(_ text: String) { service.recorder.note("connection \(peer.number): \(text)") }

    /// Runs the handler. A thrown error becomes a 500, except faults and cancellation.
    private func response(to request: OriginRequest) async throws -> OriginResponse {
        defer {
            reader.endHandling()
            channel.stopObserving()
        }
        let response: OriginResponse
        do { response = try await handler.respond(to: request) } catch let fault as OriginFault {
            response = fault.response
        } catch is CancellationError { throw CancellationError() } catch {
            service.recorder.note("\(request.method) \(request.target): \(error)")
            if case OriginError.disconnected = error { throw error }
            let isClientError = if case OriginError.malformedRequest = error { true } else { false }
            return .text("\(error)\n", status: isClientError ? 400 : 500).with { $0.closesConnection = isClientError }
        }
        if !response.body.isStream {
            await reader.readIgnoredBody(limit: service.limits.unreadBodyLimit, isBeforeFault: response.fault != nil)
        }
        if response.delay > .zero { try await Task.sleep(for: response.delay) }
        if let fault = response.fault, fault.bodyByteCount == nil { throw fault }
        return response
    }

    /// Sends a response.
    /// - Returns: Whether the connection persists.
    private func send(
        _ response: OriginResponse, to request: OriginRequest, _ version: WireVersion, _ served: inout ServedRequest
    ) async throws -> Bool {
        for interim in response.interim { try await request.send(interim) }
        var response = response
        let isLast = service.limits.requestsPerConnection.map { request.number >= $0 } ?? false
        let mayPersist = reader.persists && !isLast && reader.canDrain(limit: service.limits.unreadBodyLimit)
        var plan = ResponsePlan(response, to: request.method, version, mayPersist: mayPersist)
        let bytes: [UInt8]
        do throws(WireError) { bytes = try plan.head() } catch {
            service.recorder.note("\(request.method) \(request.target): the response cannot be sent: \(error)")
            response = .text("\(error)\n", status: 500)
            plan = ResponsePlan(response, to: request.method, version, mayPersist: mayPersist)
            bytes = try plan.head()
        }
        let writer = OriginBodyWriter(channel: channel, head: bytes, framing: plan.framing, response)
        defer { served.bodyByteCount = writer.byteCount }
        served.status = response.status
        guard plan.sendsBody else {
            try await writer.flush()
            guard let takeover = response.takeover else { return plan.persists }
            try await takeover(OriginStream(channel))
            return false
        }
        if response.pacing != nil { try await writer.flush() }
        do { try await response.body.write(to: writer) } catch let fault as OriginFault {
            // If the client has disconnected in the meantime, the fault stays the same.
            if let count = fault.bodyByteCount { try? await writer.fill(upTo: count) }
            throw fault
        }
        try await writer.finish(trailers: response.trailers)
        return plan.persists
    }

    private func reject(_ error: WireError) async -> Outcome {
        let status: Int
        switch error.code {
        case .headTooLarge, .lineTooLong, .tooManyLines: status = 431
        case .unsupportedVersion: status = 505
        case .truncated: return .close
        default: status = 400
        }
        let response = OriginResponse.text("\(error)\n", status: status)
        let plan = ResponsePlan(response, to: .get, .http11, mayPersist: false)
        do { try await channel.send(plan.head() + Array("\(error)\n".utf8)) } catch { return .close }
        return .linger
    }
}

/// The plan for sending a response, derived from the response, its request, and the state of the connection.
struct ResponsePlan {
    let sendsBody: Bool
    let framing: OriginBodyWriter.Framing
    let persists: Bool
    private let response: OriginResponse
    private let version: WireVersion
    private let hasBody: Bool

    /// - Parameter mayPersist: Whether the client and the rest of the request allow another request.
    init(_ response: OriginResponse, to method: HTTPRequest.Method, _ version: WireVersion, mayPersist: Bool) {
        (self.response, self.version) = (response, version)
        hasBody = response.takeover == nil && response.status >= 200 && response.status != 204 && response.status != 304
        sendsBody = hasBody && method != .head
        let length = response.body.length
        let isChunkable = version == .http11 && !response.usesHTTP10
        let isDelimited: Bool
        if response.headers.contains("Content-Length") || response.headers.contains("Transfer-Encoding") {
            framing = .raw
            isDelimited =
                !sendsBody || response.headers.contains("Transfer-Encoding")
                || length.map { "\($0)" } == response.headers["Content-Length"]
        } else {
            switch (response.framing, length) {
            case (.automatic, .some(let length)): (framing, isDelimited) = (.length(length), true)
            case (.chunked(let size), _) where isChunkable: (framing, isDelimited) = (.chunked(size: size), true)
            case (.automatic, nil) where isChunkable: (framing, isDelimited) = (.chunked(size: nil), true)
            default: (framing, isDelimited) = (.raw, !sendsBody)
            }
        }
        persists = mayPersist && !response.closesConnection && isDelimited
    }

    /// The bytes of the head.
    /// - Throws: The error of a status, phrase or field that cannot be sent.
    func head() throws(WireError) -> [UInt8] {
        var encoder = ResponseEncoder()
        try encoder.begin(
            status: response.status, reason: response.reason ?? StatusPhrase.of(response.status),
            version: response.usesHTTP10 ? .http10 : .http11)
        if !response.headers.contains("Date") { try encoder.field(name: "Date", value: HTTPDate(Date()).text) }
        for (name, value) in response.headers { try encoder.field(name: name, value: value) }
        switch framing {
        case .length(let length) where hasBody: try encoder.framing(.length(length))
        case .chunked where hasBody: try encoder.framing(.chunked)
        default: break
        }
        if !response.headers.contains("Connection"), !persists || version == .http10 {
            try encoder.field(name: "Connection", value: persists ? "keep-alive" : "close")
        }
        encoder.end()
        return encoder.bytes
    }
}

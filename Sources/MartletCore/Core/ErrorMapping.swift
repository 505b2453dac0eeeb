extension Call {
    package func error(
        _ code: HTTPError.Code, _ phase: HTTPError.Phase, _ message: String, wasSent: Bool = false, attempts: Int = 1,
        underlying: (any Error)? = nil, exchange: HTTPExchange? = nil
    ) -> HTTPError {
        HTTPError(
            code, phase: phase, message: message, wasSent: wasSent, method: method, url: url, attempts: attempts,
            underlying: underlying, exchange: exchange)
    }

    /// Returns the error of a call whose timeout expired.
    /// - Parameters:
    ///   - moment: A phrase that follows “the total timeout expired”, such as “while the call was paused”.
    ///   - began: The start of the wait; `nil` for the start of the call.
    package func timedOut(
        _ phase: HTTPError.Phase, _ moment: String, sentCount: Int = 0, timeout: HTTPError.Timeout = .total,
        since began: MonotonicTime? = nil
    ) -> HTTPError {
        let elapsed = MonotonicTime.now().since(began ?? start)
        var error = error(
            .timedOut, phase, "the \(timeout.rawValue) timeout expired \(moment), after \(HTTPError.text(elapsed))",
            wasSent: sentCount > 0, attempts: max(1, sentCount))
        (error.timeout, error.elapsed) = (timeout, elapsed)
        return error
    }

    /// Returns the error that reports a failure of the call. An ``HTTPError`` names the call's request.
    package func reason(of failure: any Error) -> any Error {
        let error = ResponseValidationError.reason(of: failure)
        return (error as? HTTPError)?.about(method, url, call: self) ?? error
    }

    /// The number of requests of the call so far: this one and the earlier ones.
    package var requestCount: Int { hops.count + 1 }

    /// Returns the error of a call whose exchange failed or was cancelled and is not retried.
    /// - Parameter status: The status of the response whose body failed.
    package func failure(_ error: ExchangeError, attempts: Int, status: Int? = nil) -> any Error {
        if case .cancelled = error.cause { return CancellationError() }
        return HTTPError(error, call: self, attempts: attempts).about(method, url, status: status)
    }
}

extension HTTPError {
    /// Maps the errors of the layers below to the public error. A cancelled exchange is not mapped here.
    init(_ error: ExchangeError, call: Call, attempts: Int) {
        let attempts = attempts + call.hops.count
        let elapsed = MonotonicTime.now().since(call.start)
        let phase = Phase(error.phase)
        self.init(
            .connectionLost, phase: phase, message: "", wasSent: error.wasSent, method: call.method, url: call.url,
            elapsed: error.waited ?? elapsed, attempts: attempts)
        proxy = error.proxy?.description
        connection = error.reached.map {
            FailedConnection(
                .measured(
                    DeferredMetrics.Measurement(
                        start: call.start, waited: call.start, ended: MonotonicTime.now(), attempts: attempts,
                        hops: call.hops, proxy: call.proxy?.description, timeline: ExchangeTimeline(),
                        connection: $0.information, dial: $0.timings)), tunnelHeads: error.tunnelHeads)
        }
        switch error.cause {
        case .transport(let cause): describe(cause, call)
        case .proxy(let handshakeError):
            code = .proxyFailed
            let cause = ProxyError(handshakeError, proxy: proxy ?? "")
            message = cause.description
            underlying = cause
        case .wire(let cause):
            code = Code(cause)
            message = cause.description
            underlying = cause
        case .coding(let cause):
            code = .contentDecodingFailed
            message = cause.description
            underlying = cause
        case .content(let cause):
            code = .checksumMismatch
            message = cause.description
            underlying = cause
        case .source(let cause):
            let isMismatch = cause is CompressedBody.LengthError || (cause as? HTTPError)?.code == .bodyLengthMismatch
            code = cause is StorageError ? .fileFailed : isMismatch ? .bodyLengthMismatch : .bodySourceFailed
            message = "the body's source failed: \(cause)"
            underlying = cause
        case .lengthMismatch(let announced, let actual):
            code = .bodyLengthMismatch
            message =
                actual > announced
                ? "the given length of the body is \(announced) bytes, but its source returned more"
                : "the given length of the body is \(announced) bytes, but its source returned \(actual)"
        case .timedOut(let expired):
            code = .timedOut
            let timeout = Timeout(expired)
            self.timeout = timeout
            message =
                "the \(timeout.rawValue) timeout expired while \(phase.words), after \(HTTPError.text(self.elapsed ?? elapsed))"
            if let shortage = error.shortage { message += ": \(shortage)" }
            if expired == .total, let hop = call.hops.last, hop.reason == .retry, let status = hop.status {
                message += "; the previous response was \(status)"
            }
        case .cancelled: message = "the call was cancelled"
        }
    }

    private mutating func describe(_ cause: TransportError, _ call: Call) {
        switch cause {
        case .resolution(let error):
            code = .resolutionFailed
            message =
                (proxy.map { "could not resolve the proxy \($0): \(error.message)" } ?? error.description)
                + "; check the name, and this machine's DNS"
            underlying = error
        case .connect(let failures):
            code = failures.contains(where: \.error.isLocalShortage) ? .systemFailed : .connectFailed
            let target = proxy.map { "the proxy \($0)" } ?? "\(call.url.host) port \(call.url.port)"
            message =
                "could not connect to \(target): \(HTTPError.text(failures, of: proxy ?? call.url.origin.description))"
            underlying = failures.first
            connectErrors = failures
        case .system(let error):
            code = error.isLocalShortage ? .systemFailed : .connectionLost
            message = "the connection broke while \(phase.words): \(error)"
            underlying = error
        case .tls(let error):
            code = .tlsFailed
            message = proxy.map { "the proxy \($0): \(error)" } ?? error.description
            underlying = error
        case .closed:
            code = phase == .waitingForConnection ? .sessionInvalidated : .connectionLost
            message =
                phase == .waitingForConnection
                ? "the session was invalidated" : "the connection was closed while \(phase.words)"
        case .addressLost:
            code = .connectionLost
            message =
                "the connection was lost while \(phase.words): its local address was removed, for example by a change of network"
        case .timedOut:
            code = .timedOut
            message = "a timeout expired while \(phase.words)"
        case .interrupted: message = "the call was interrupted"
        }
    }

    /// Returns the reasons of failed connection attempts, and advice. An address that equals the target is omitted.
    /// - Parameter target: The origin of the server, or the proxy, as a URL.
    private static func text(_ failures: [ConnectError], of target: String) -> String {
        let port = target.split(separator: ":").last ?? ""
        let reasons = failures.map { failure in
            let reason = SystemError.text(of: failure.error.code).lowercased()
            if target.hasSuffix("//\(failure.address)") { return reason }
            let isSamePort = failure.address.hasSuffix(":\(port)")
            let address = isSamePort ? failure.address.dropLast(port.utf8.count + 1) : failure.address[...]
            return "\(address): \(reason)"
        }
        let advice: String? =
            if failures.contains(where: \.error.isLocalShortage) {
                "raise the limit on open files (ulimit -n), or lower the session's connection limits"
            } else if failures.allSatisfy({ $0.error.isConnectionRefused }) {
                "check that it is running and listens on this port"
            } else { nil }
        return (reasons + [advice].compactMap(\.self)).joined(separator: "; ")
    }

    /// Returns a duration as text: `1.5 s`, `250 ms`.
    package static func text(_ duration: Duration) -> String {
        let milliseconds = duration.wholeMilliseconds
        if milliseconds < 1000 { return "\(milliseconds) ms" }
        let tenths = milliseconds / 100
        return tenths % 10 == 0 ? "\(tenths / 10) s" : "\(tenths / 10).\(tenths % 10) s"
    }
}

extension HTTPError.Phase {
    init(_ phase: ExchangeError.Phase) {
        switch phase {
        case .waiting: self = .waitingForConnection
        case .resolving: self = .resolving
        case .connecting: self = .connecting
        case .tunneling: self = .tunneling
        case .tlsHandshake: self = .tlsHandshake
        case .sending: self = .sending
        case .awaitingHead: self = .awaitingHead
        case .receivingBody: self = .receivingBody
        case .upgraded: self = .upgraded
        }
    }

    /// The activity of the call, as words that follow "while".
    var words: String {
        switch self {
        case .preparing: "preparing the request"
        case .waitingForConnection: "waiting for a connection"
        case .resolving: "resolving the name"
        case .connecting: "connecting"
        case .tunneling: "waiting for the proxy"
        case .tlsHandshake: "negotiating TLS"
        case .sending: "sending the request"
        case .awaitingHead: "waiting for the response"
        case .receivingBody: "receiving the body"
        case .upgraded: "using the upgraded connection"
        case .processingResponse: "evaluating the response"
        }
    }
}

extension HTTPError.Timeout {
    init(_ expired: ExchangeError.Timeout) {
        switch expired {
        case .poolWait: self = .poolWait
        case .connect: self = .connect
        case .head: self = .head
        case .idle: self = .idle
        case .total: self = .total
        }
    }
}

extension HTTPError.Code {
    init(_ error: WireError) {
        switch error.code {
        case _ where error.isLocalError: self = .invalidRequest
        case .emptyResponse: self = .emptyResponse
        case .truncated: self = .truncated
        case .headTooLarge, .lineTooLong, .tooManyLines, .tooManyInformationalResponses, .trailersTooLarge,
            .chunkExtensionsTooLarge, .chunkSizeTooLong:
            self = .limitExceeded
        default: self = .protocolViolation
        }
    }
}

extension HTTPError {
    /// Creates the error of a call that could not write the body of its response to a file.
    package init(storage error: StorageError, method: HTTPRequest.Method? = nil, url: HTTPURL? = nil) {
        self.init(
            error.isOutOfSpace ? .diskFull : .fileFailed, phase: .receivingBody, message: error.description,
            wasSent: true, method: method, url: url, underlying: error)
    }

    /// Creates the error of a file operation outside of a call, such as in the directory of an offline queue.
    package init(storing error: StorageError) {
        self.init(storage: error)
        phase = .preparing
        wasSent = false
    }

    /// Runs a disk operation, and maps its error by ``init(storing:)``.
    package static func storing<Value>(_ body: () throws(StorageError) -> Value) throws(HTTPError) -> Value {
        do throws(StorageError) { return try body() } catch { throw HTTPError(storing: error) }
    }

    /// Creates the error of a directory of records that could not be opened.
    /// - Parameters:
    ///   - owner: The object that opens the directory, such as `download manager`.
    ///   - contents: The records, such as `downloads`.
    package init(opening openError: RecordDirectory.OpenError, path: String, owner: String, contents: String) {
        let reason: String
        switch openError {
        case .storage(let error):
            self.init(storing: error)
            return
        case .foreign:
            reason = "the directory of the \(contents) belongs to another user; choose a directory that you own"
        case .writableByOthers:
            reason = "the directory of the \(contents) is writable by other users; run chmod 700 on it"
        case .otherFiles(let files):
            reason =
                "is not a \(owner) directory (\(files)); it was not changed; choose a new or an empty one"
        case .inUse: reason = "another \(owner) uses this directory, in this process or another one"
        }
        let isInUse = if case .inUse = openError { true } else { false }
        self.init(isInUse ? .alreadyInProgress : .fileFailed, phase: .preparing, message: "\(path): \(reason)")
    }
}

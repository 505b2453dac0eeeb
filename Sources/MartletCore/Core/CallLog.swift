import Logging

/// The log messages of a call. Their metadata has the keys that the page “Observability” documents: `call`, `method`,
/// `origin`, `path`, and, if known, `status`, `attempt`, `duration`, `source`, `cache` and `error`.
///
/// Nothing is computed unless the logger's level requires it.
extension Call {
    /// Logs the response of the call: `debug`.
    @inline(never) func log(_ answer: StreamedResponse) {
        settings.configuration.logger.debug(
            "response",
            metadata: answer.call.metadata(attempt: answer.attempts + answer.call.hops.count) {
                $0["status"] = "\(answer.head.status)"
                $0["source"] = "\(answer.source.rawValue)"
                $0["cache"] = (answer.provenance?.cacheStatus).map { "\($0)" }
                $0["reused"] = "\(answer.channel.isReused)"
            })
    }

    /// Logs the failure of the call: `warning`, or `debug` for a cancelled call.
    @inline(never) func log(_ error: any Error) {
        let failure = error as? HTTPError
        settings.configuration.logger.log(
            level: error is CancellationError ? .debug : .warning, "call failed",
            metadata: metadata(attempt: failure?.attempts) {
                // The URL after redirects is logged.
                if let url = failure?.url { $0["path"] = "\(url.requestTarget)" }
                if let origin = failure?.origin { $0["origin"] = "\(origin)" }
                $0["status"] = failure?.status.map { "\($0)" }
                $0["error"] = "\(failure?.logText ?? "\(error)")"
            })
    }

    /// Logs that the call sends another request after this one: `notice` for a retry, otherwise `debug`.
    @inline(never) func log(_ hop: HTTPHop, _ error: HTTPError?, attempt: Int) {
        settings.configuration.logger.log(
            level: hop.reason == .retry ? .notice : .debug, "another request follows",
            metadata: metadata(attempt: attempt) {
                $0["reason"] = "\(hop.reason.rawValue)"
                $0["status"] = hop.status.map { "\($0)" }
                $0["error"] = (error?.logText ?? hop.error?.rawValue).map { "\($0)" }
                $0["delay"] = "\(HTTPError.text(hop.delay))"
            })
    }

    /// Logs that the same request is sent again: `debug`.
    @inline(never) func logRepetition(_ why: String, attempt: Int) {
        settings.configuration.logger.debug("\(why): retrying", metadata: metadata(attempt: attempt) { _ in })
    }

    private func metadata(attempt: Int?, _ add: (inout Logger.Metadata) -> Void) -> Logger.Metadata {
        var metadata: Logger.Metadata = [
            "call": "\(number)", "method": "\(method.rawValue)", "origin": "\(url.origin)",
            "path": "\(url.withoutSecrets.requestTarget)",
            "duration": "\(HTTPError.text(MonotonicTime.now().since(start)))",
        ]
        metadata["attempt"] = attempt.map { "\($0)" }
        add(&metadata)
        return metadata
    }
}

extension HTTPError {
    /// The code and the message. The message of `.decodingFailed` quotes the body, so it is omitted.
    fileprivate var logText: String { code == .decodingFailed ? code.rawValue : "\(code.rawValue): \(message)" }
}

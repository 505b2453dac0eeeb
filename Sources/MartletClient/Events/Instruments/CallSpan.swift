#if Tracing
    import Tracing

    /// The span of one call (swift-distributed-tracing), with the attributes that OpenTelemetry names for HTTP clients.
    ///
    /// Requests that came before the last one are events of it. Addresses are without user, password, query and fragment.
    final class CallSpan: CallInstrument {
        private let span: any Span
        private let instrument: any Instrument

        /// Starts a span below the one of the task.
        /// - Parameter tracer: `nil` for the one of the process, which injects with its other instruments then.
        init(_ tracer: (any Tracer)?, method: HTTPRequest.Method, url: HTTPURL) {
            instrument = tracer ?? InstrumentationSystem.instrument
            span = (tracer ?? InstrumentationSystem.tracer).startSpan(method.rawValue, ofKind: .client)
            var attributes: SpanAttributes = [:]
            attributes["http.request.method"] = method.rawValue
            attributes["url.full"] = url.bare.absoluteForm
            attributes["url.scheme"] = url.scheme.rawValue
            attributes["server.address"] = url.host
            attributes["server.port"] = Int64(url.port)
            attributes["network.protocol.name"] = "http"
            span.attributes = attributes
        }

        func observe(_ event: SessionEvent, hop: HTTPHop?) {
            if let hop { note(hop) }
            switch event.kind {
            case .requestSent(let attempt) where attempt > 1:
                span.attributes["http.request.resend_count"] = Int64(attempt - 1)
            case .responseReceived(let status, _):
                span.attributes["http.response.status_code"] = Int64(status)
                if status >= 400 {
                    span.attributes["error.type"] = "\(status)"
                    span.setStatus(SpanStatus(code: .error))
                }
            case .finished(let metrics):
                span.attributes["http.request.size"] = Int64(clamping: metrics.sentByteCount)
                span.attributes["http.response.body.size"] = Int64(clamping: metrics.receivedBodyByteCount)
                span.end()
            case .failed(let code): fail(code?.rawValue ?? "other")
            case .cancelled: fail("cancelled")
            default: break
            }
        }

        private func fail(_ type: String) {
            span.attributes["error.type"] = type
            span.setStatus(SpanStatus(code: .error, message: type))
            span.end()
        }

        private func note(_ hop: HTTPHop) {
            var attributes: SpanAttributes = [:]
            attributes["http.request.method"] = hop.method.rawValue
            attributes["url.full"] = hop.url.bare.absoluteForm
            if let status = hop.status { attributes["http.response.status_code"] = Int64(status) }
            if let error = hop.error { attributes["error.type"] = error.rawValue }
            span.addEvent(SpanEvent(name: "martlet.\(hop.reason.rawValue)", attributes: attributes))
        }

        func inject(into fields: inout HTTPFields) {
            instrument.inject(span.context, into: &fields, using: FieldInjector())
        }

        /// Writes what names a trace into a request's fields; a name or a value that no field can have is left out.
        private struct FieldInjector: Injector {
            func inject(_ value: String, forKey key: String, into carrier: inout HTTPFields) {
                guard let name = HTTPField.Name(key), HTTPField.isValidValue(value) else { return }
                carrier[name] = value
            }
        }
    }
#endif

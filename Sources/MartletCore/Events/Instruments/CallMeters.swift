#if Metrics
    import MartletContent
    import MartletURL
    import CoreMetrics
    import MartletConnections
    import MartletTransport
    import Synchronization

    /// What a session's calls are counted with (swift-metrics).
    ///
    /// - `martlet.calls`, a counter by `result`: `1xx` to `5xx`, `other`, `failed`, `cancelled`
    /// - `martlet.call.duration`, a timer, by `result` likewise
    /// - `martlet.requests` and `martlet.repeats`, counters: what was sent, and how much of it because another request followed
    /// - `martlet.bytes.sent` and `martlet.bytes.received`, counters, of calls that were answered
    /// - `martlet.pool.idle`, `.leased`, `.dialling` and `.waiting`, meters
    final class CallMeters: Sendable {
        private struct Result: Sendable {
            let count: any CounterHandler
            let duration: any TimerHandler
        }

        private let results: [String: Result]
        private let requests: any CounterHandler
        private let repeats: any CounterHandler
        private let bytesSent: any CounterHandler
        private let bytesReceived: any CounterHandler
        private let idle: any MeterHandler
        private let leased: any MeterHandler
        private let dialling: any MeterHandler
        private let waiting: any MeterHandler

        init(_ factory: any MetricsFactory) {
            var results: [String: Result] = [:]
            for name in ["1xx", "2xx", "3xx", "4xx", "5xx", "other", "failed", "cancelled"] {
                let dimensions = [("result", name)]
                results[name] = Result(
                    count: factory.makeCounter(label: "martlet.calls", dimensions: dimensions),
                    duration: factory.makeTimer(label: "martlet.call.duration", dimensions: dimensions))
            }
            self.results = results
            requests = factory.makeCounter(label: "martlet.requests", dimensions: [])
            repeats = factory.makeCounter(label: "martlet.repeats", dimensions: [])
            bytesSent = factory.makeCounter(label: "martlet.bytes.sent", dimensions: [])
            bytesReceived = factory.makeCounter(label: "martlet.bytes.received", dimensions: [])
            idle = factory.makeMeter(label: "martlet.pool.idle", dimensions: [])
            leased = factory.makeMeter(label: "martlet.pool.leased", dimensions: [])
            dialling = factory.makeMeter(label: "martlet.pool.dialling", dimensions: [])
            waiting = factory.makeMeter(label: "martlet.pool.waiting", dimensions: [])
        }

        func requestSent() { requests.increment(by: 1) }

        func repeated() { repeats.increment(by: 1) }

        func moved(_ metrics: HTTPMetrics) {
            bytesSent.increment(by: Int64(clamping: metrics.sentByteCount))
            bytesReceived.increment(by: Int64(clamping: metrics.receivedBodyByteCount))
        }

        func ended(_ result: String, after duration: Duration) {
            guard let result = results[result] ?? results["other"] else { return }
            result.count.increment(by: 1)
            result.duration.recordNanoseconds(duration.wholeNanoseconds)
        }

        func pool(_ status: PoolStatus) {
            idle.set(Int64(status.idle))
            leased.set(Int64(status.leased))
            dialling.set(Int64(status.dialling))
            waiting.set(Int64(status.waiting))
        }
    }

    /// Counts one call.
    final class CallMeasurement: CallInstrument {
        private let meters: CallMeters
        private let pool: ConnectionPool
        private let status = Atomic<Int>(0)

        init(_ meters: CallMeters, pool: ConnectionPool) {
            self.meters = meters
            self.pool = pool
        }

        func observe(_ event: SessionEvent, hop: HTTPHop?) {
            if hop != nil { meters.repeated() }
            switch event.kind {
            case .requestSent: meters.requestSent()
            case .connectionOpened, .connectionReused: meters.pool(pool.snapshot)
            case .responseReceived(let status, _): self.status.store(status, ordering: .relaxed)
            case .finished(let metrics):
                let kind = status.load(ordering: .relaxed) / 100
                meters.moved(metrics)
                end((1...5).contains(kind) ? "\(kind)xx" : "other", event)
            case .failed: end("failed", event)
            case .cancelled: end("cancelled", event)
            default: break
            }
        }

        private func end(_ result: String, _ event: SessionEvent) {
            meters.ended(result, after: event.elapsed)
            meters.pool(pool.snapshot)
        }

        func inject(into fields: inout HTTPFields) {}
    }
#endif

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

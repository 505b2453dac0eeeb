#if Metrics
    import CoreMetrics
    import Synchronization

    /// The metrics of a session's calls (swift-metrics):
    ///
    /// - `martlet.calls`, a counter by `result`: `1xx` to `5xx`, `other`, `failed`, `cancelled`
    /// - `martlet.call.duration`, a timer, by the same `result`
    /// - `martlet.requests` and `martlet.repeats`, counters of requests: all, and those that another request followed
    /// - `martlet.bytes.sent` and `martlet.bytes.received`, counters for calls with a response
    /// - `martlet.pool.idle`, `.leased`, `.dialing` and `.waiting`, meters
    final class CallMeters: Sendable {
        fileprivate struct Result: Sendable {
            let count: any CounterHandler
            let duration: any TimerHandler
        }

        fileprivate let results: [String: Result]
        fileprivate let requests: any CounterHandler
        fileprivate let repeats: any CounterHandler
        fileprivate let bytesSent: any CounterHandler
        fileprivate let bytesReceived: any CounterHandler
        private let pool: [(meter: any MeterHandler, value: @Sendable (PoolStatus) -> Int)]

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
            let counts: [(String, @Sendable (PoolStatus) -> Int)] = [
                ("idle", { $0.idle }), ("leased", { $0.leased }), ("dialing", { $0.dialing }),
                ("waiting", { $0.waiting }),
            ]
            pool = counts.map { name, count in (factory.makeMeter(label: "martlet.pool.\(name)", dimensions: []), count)
            }
        }

        fileprivate func note(_ status: PoolStatus) { for (meter, value) in pool { meter.set(Int64(value(status))) } }
    }

    /// The measurement of one call.
    final class CallMeasurement: CallInstrument {
        private let meters: CallMeters
        private let pool: ConnectionPool
        private let status = Atomic<Int>(0)

        init(_ meters: CallMeters, pool: ConnectionPool) {
            (self.meters, self.pool) = (meters, pool)
        }

        func observe(_ event: SessionEvent, hop: HTTPHop?) {
            if hop != nil { meters.repeats.increment(by: 1) }
            switch event.kind {
            case .requestSent: meters.requests.increment(by: 1)
            case .connectionOpened, .connectionReused: meters.note(pool.snapshot)
            case .responseReceived(let status, _, _): self.status.store(status, ordering: .relaxed)
            case .finished(let metrics):
                let kind = status.load(ordering: .relaxed) / 100
                meters.bytesSent.increment(by: Int64(clamping: metrics.sentByteCount))
                meters.bytesReceived.increment(by: Int64(clamping: metrics.receivedBodyByteCount))
                end((1...5).contains(kind) ? "\(kind)xx" : "other", event)
            case .failed: end("failed", event)
            case .cancelled: end("cancelled", event)
            default: break
            }
        }

        private func end(_ result: String, _ event: SessionEvent) {
            if let result = meters.results[result] {
                result.count.increment(by: 1)
                result.duration.recordNanoseconds(event.elapsed.wholeNanoseconds)
            }
            meters.note(pool.snapshot)
        }

        func inject(into fields: inout HTTPFields) {}
    }
#endif

#if Tracing
    import Tracing

    /// The span of one call (swift-distributed-tracing), with OpenTelemetry's attributes for HTTP clients.
    ///
    /// Each request except the last is an event of the span. URLs have no user, password, query or fragment.
    final class CallSpan: CallInstrument {
        private let span: any Span
        private let instrument: any Instrument

        /// Starts a span as a child of the task's span.
        /// - Parameter tracer: The tracer; `nil` for the process's tracer, with the fields of all its instruments.
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
            case .responseReceived(let status, _, _):
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

        /// An injector of a trace's fields into a request, except for names and values that are invalid there.
        private struct FieldInjector: Injector {
            func inject(_ value: String, forKey key: String, into carrier: inout HTTPFields) {
                guard let name = HTTPField.Name(key), HTTPField.isValidValue(value) else { return }
                carrier[name] = value
            }
        }
    }
#endif

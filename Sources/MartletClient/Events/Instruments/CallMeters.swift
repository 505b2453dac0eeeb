#if Metrics
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

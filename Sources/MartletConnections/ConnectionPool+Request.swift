package import MartletTransport

extension ConnectionPool {
    /// What an acquisition needs to know beside where to: numbers, which cost nothing to hand on.
    package struct Request: Sendable {
        /// Who goes first when several wait.
        package var priority: RequestPriority
        /// Who goes first of those that are equally urgent.
        package var order: WaitingOrder
        /// How long to wait for a connection to be free; `nil` for ever.
        package var poolTimeout: Duration?
        /// How long opening one may take; `nil` for ever.
        package var connectTimeout: Duration?
        /// When the whole call must be over.
        package var totalDeadline: MonotonicTime
        /// When it is asked for: the present instant.
        package var start: MonotonicTime
        /// Whether one that has carried an exchange will not do: a kept one has died under the request.
        package var isFresh: Bool
        /// When it came first, by ``Ticket/arrival``: it gave up its place in the line, and has it back. `nil` for now.
        package var arrival: UInt64?
        /// How long it has waited before, by the pool clock.
        package var waited = Duration.zero
        /// Whether the socket of a kept connection has to be looked at right before: the request may not be sent again, should
        /// the connection have ended.
        package var mustLook: Bool

        /// A request for a connection.
        package init(
            priority: RequestPriority = .normal, order: WaitingOrder = .firstComeFirstServed,
            poolTimeout: Duration? = nil, connectTimeout: Duration? = nil,
            totalDeadline: MonotonicTime = .distantFuture, start: MonotonicTime = MonotonicTime.now(),
            isFresh: Bool = false, mustLook: Bool = false
        ) {
            self.isFresh = isFresh
            self.mustLook = mustLook
            self.start = start
            self.priority = priority
            self.order = order
            self.poolTimeout = poolTimeout
            self.connectTimeout = connectTimeout
            self.totalDeadline = totalDeadline
        }

        /// When it would have begun to wait, had it waited all at once.
        var waitStart: MonotonicTime { waited == .zero ? start : start.advanced(by: .zero - waited) }

        /// Whether a kept connection is fit for the request.
        func accepts(_ connection: HTTP1Connection) -> Bool {
            connection.isQuiet(at: start, mustLook: mustLook)
        }
    }

    /// What an acquisition came to at once.
    package enum Acquisition: Sendable {
        /// An idle connection.
        case lease(Lease)
        /// A place in the line.
        case ticket(Ticket)
    }

    /// A place in the line for a connection.
    package struct Ticket: Sendable {
        let id: PoolWaiterID
        let waiter: PoolWaiter
        let pool: ConnectionPool
        let totalDeadline: MonotonicTime
        /// When the request came, on the pool's clock: with it, one that gave up its place gets it back.
        package let arrival: UInt64?

        /// Gives the place up; the wait throws. Any thread may call it, any number of times.
        package func cancel() {
            pool.cancel(id)
        }

        /// Changes how urgent the request is, from now on. Any thread may call it, at any time.
        package func setPriority(_ priority: RequestPriority) {
            pool.setPriority(priority, of: id)
        }

        /// Notes that the request was made by calls that run, such as a request in the closure of a stream, or while a
        /// connection is opened, such as one of a resolver. It does not wait for the connections that are held meanwhile.
        /// - Parameter exchanges: The exchanges of those calls, the outermost first.
        package func nest(in exchanges: [Exchange]) {
            let dials = ConnectionPool.enclosingDials.filter { $0.pool == ObjectIdentifier(pool) }.map(\.id)
            let holders =
                dials + exchanges.filter { $0.lease.pool === pool && !$0.isFinished }.map(\.lease.id)
            if !holders.isEmpty { pool.nest(id, in: holders) }
        }

        /// Waits for the connection.
        package func lease() async throws(ExchangeError) -> Lease {
            switch await waiter.result.wait(until: totalDeadline, on: pool.loop) {
            case .value(.success(let lease)): return lease
            case .value(.failure(let error)): throw error
            case .timedOut:
                let isDialling = pool.isDialling(for: id)
                let shortage = pool.shortage(of: id)
                // A connection granted in this very moment finds the place settled and goes back by itself.
                pool.cancel(id)
                throw ExchangeError(
                    cause: .timedOut(.total), phase: isDialling ? .connecting : .waiting, wasSent: false,
                    waited: MonotonicTime.now().since(waiter.start), shortage: shortage)
            case .interrupted:
                throw ExchangeError(cause: .cancelled, phase: .waiting, wasSent: false)
            }
        }
    }
}

/// How many connections are in each state, and how many requests wait for one.
package struct PoolCounts: Hashable, Sendable, CustomStringConvertible {
    /// Connections in use.
    package var leased: Int
    /// Connections that wait for a request.
    package var idle: Int
    /// Connections being made, those given up but not yet ended included.
    package var dialling: Int
    /// Requests that wait for a connection.
    package var waiting: Int

    /// Creates counts; zero by default.
    package init(leased: Int = 0, idle: Int = 0, dialling: Int = 0, waiting: Int = 0) {
        self.leased = leased
        self.idle = idle
        self.dialling = dialling
        self.waiting = waiting
    }

    /// All connections that count against the limits.
    package var connections: Int { leased + idle + dialling }

    /// For example `2 leased, 1 idle, 0 dialling, 3 waiting`.
    package var description: String {
        "\(leased) leased, \(idle) idle, \(dialling) dialling, \(waiting) waiting"
    }
}

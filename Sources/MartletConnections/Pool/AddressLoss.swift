package import MartletTransport

/// Which of this machine's addresses it had and has no more.
///
/// Only what was there before can be lost: a program may use addresses that no interface has (`IP_FREEBIND`, local routes).
package struct AddressLoss: Sendable {
    /// At how many lost addresses they are forgotten: private addresses of IPv6 change daily, for years.
    private static let countLimit = 1_024

    private var held: Set<IPAddress> = []
    /// Those that are lost, and have not come back.
    package private(set) var lost: Set<IPAddress> = []

    /// Nothing is known yet.
    package init() {}

    /// The machine has these addresses now.
    /// - Returns: Whether any has gone since it was told last.
    package mutating func update(_ now: Set<IPAddress>) -> Bool {
        let gone = held.subtracting(now)
        held = now
        lost.subtract(now)
        if lost.count + gone.count > AddressLoss.countLimit { lost = [] }
        lost.formUnion(gone)
        return !gone.isEmpty
    }

    /// Whether a socket's own address, as it is described, is lost. Those of the loopback network never are: all of it is
    /// this machine.
    package func isLost(_ localAddress: String) -> Bool {
        guard !lost.isEmpty, let address = IPAddress(socket: localAddress) else { return false }
        return !address.isLoopback && lost.contains(address)
    }
}

/// The state machine that decides when each look-up of a name starts, without threads and without a clock. A look-up by
/// `getaddrinfo` cannot be stopped, and blocks its thread for ten seconds or more if the name server is silent. So the
/// machine never assumes that a running look-up ends soon:
/// - **Limit.** The number of threads has a limit.
/// - **Share.** A look-up starts if its domain has fewer threads than are free. Thus one domain whose name server is
///   silent gets half of the threads. Two such domains get a third each. The rest stays free for other domains.
///   (Switches share a buffer among their ports by the same rule, called dynamic thresholds.) A look-up that all of its
///   callers have abandoned counts half, so that one domain never has more than two thirds.
/// - **Pace.** At most ``Limits/burst`` of the running look-ups are younger than ``Limits/burstDuration``. Thus many
///   quick look-ups do not flood the name server, and slow ones stop counting after 20 ms.
/// - **Turns.** Domains take turns, with one name per turn.
/// - **Hosts file.** Its names need no name server. Only the limit applies to them, and some threads are reserved.
package struct LookUpMachine {
    package struct Limits: Sendable {
        /// The maximum number of look-ups that run at the same time, each on its own thread.
        package var threadCount = 512
        /// The part of ``threadCount`` that only names of the hosts file may use.
        package var localReserve = 8
        /// The maximum number of running look-ups that are younger than ``burstDuration``. Each sends two queries, and
        /// dnsmasq refuses queries while 150 others are unanswered.
        package var burst = 64
        /// The time after which a running look-up does not count towards ``burst`` any more.
        package var burstDuration = Duration.milliseconds(20)

        /// Creates the limits for the system's resolver.
        package init() {}
    }

    struct Effects: Equatable {
        /// The names to look up now, in this order.
        var starts: [String] = []
        /// The time at which ``advance(now:)`` is due; `nil` if no look-up waits for time to pass.
        var wakeUp: MonotonicTime?
    }

    private struct LookUp {
        /// The name's domain; `nil` for a name of the hosts file.
        let domain: String?
        /// The time at which the look-up started; `nil` while it is queued.
        var startedAt: MonotonicTime?
        /// Whether a caller waits for the result. A queued look-up without callers is removed.
        var isWanted = true
    }

    private struct Domain {
        var queued = RemovableQueue<String>()
        var wantedCount = 0
        var abandonedCount = 0
        /// The domain's use of threads, in half threads: an abandoned look-up counts half.
        var weight: Int { 2 * wantedCount + abandonedCount }
        var isUnused: Bool { queued.isEmpty && wantedCount + abandonedCount == 0 }
    }

    private let limits: Limits
    private var lookUps: [String: LookUp] = [:]
    private var domains: [String: Domain] = [:]
    /// The domains with queued names, in the order of their turns.
    private var turns = RemovableQueue<String>()
    /// The queued names of the hosts file.
    private var localNames = RemovableQueue<String>()
    /// The running look-ups that count towards ``Limits/burst``, oldest first.
    private var recent = RemovableQueue<String>()
    private(set) var runningCount = 0

    init(limits: Limits = Limits()) { self.limits = limits }

    /// The number of look-ups that wait for a thread.
    var queuedCount: Int { lookUps.count - runningCount }

    /// Whether the machine holds nothing, not even an empty queue.
    var isIdle: Bool { lookUps.isEmpty && domains.isEmpty && turns.isEmpty && recent.isEmpty && localNames.isEmpty }

    /// The registrable domain of a name, approximately: its last two labels. Names of one label share the empty domain,
    /// because all of them are looked up below the search domains of this machine.
    static func domain(of name: String) -> String {
        let labels = name.split(separator: ".")
        return labels.count < 2 ? "" : labels.suffix(2).joined(separator: ".")
    }

    // MARK: Events

    /// Handles the first caller of a name, or the first new caller after all others have left.
    /// - Parameter isLocal: Whether the hosts file contains the name.
    mutating func requested(_ name: String, isLocal: Bool, now: MonotonicTime) -> Effects {
        if let lookUp = lookUps[name] {
            lookUps[name]?.isWanted = true
            if !lookUp.isWanted { count(lookUp.domain, wanted: 1, abandoned: -1) }
        } else if isLocal {
            lookUps[name] = LookUp(domain: nil)
            localNames.append(name)
        } else {
            let domain = LookUpMachine.domain(of: name)
            lookUps[name] = LookUp(domain: domain)
            domains[domain, default: Domain()].queued.append(name)
            turns.append(domain)
        }
        return advance(now: now)
    }

    /// Handles the departure of a name's last caller.
    mutating func abandoned(_ name: String, now: MonotonicTime) -> Effects {
        guard let lookUp = lookUps[name], lookUp.isWanted else { return advance(now: now) }
        if lookUp.startedAt != nil {
            lookUps[name]?.isWanted = false
            recent.remove(name)
            count(lookUp.domain, wanted: -1, abandoned: 1)
        } else {
            lookUps[name] = nil
            dequeue(name, of: lookUp.domain)
        }
        return advance(now: now)
    }

    /// Handles the end of a running look-up, whose thread is free again.
    mutating func ended(_ name: String, now: MonotonicTime) -> Effects {
        guard let lookUp = lookUps[name], lookUp.startedAt != nil else { return advance(now: now) }
        lookUps[name] = nil
        recent.remove(name)
        runningCount -= 1
        if lookUp.isWanted { count(lookUp.domain, wanted: -1) } else { count(lookUp.domain, abandoned: -1) }
        return advance(now: now)
    }

    // MARK: Rules

    /// Starts the look-ups that may start. Called after an event, and at the time of ``Effects/wakeUp``.
    mutating func advance(now: MonotonicTime) -> Effects {
        while let name = recent.first, burstEnd(of: name) <= now { recent.remove(name) }
        var effects = Effects()
        while runningCount < limits.threadCount, let name = localNames.popFirst() {
            start(name, now: now)
            effects.starts.append(name)
        }
        while recent.count < limits.burst, let domain = turns.first(where: { mayStart($0) }),
            let name = domains[domain]?.queued.first
        {
            dequeue(name, of: domain)
            start(name, now: now)
            recent.append(name)
            effects.starts.append(name)
            // The domain's next turn comes after those of all others.
            if domains[domain]?.queued.isEmpty == false {
                turns.remove(domain)
                turns.append(domain)
            }
        }
        if recent.count >= limits.burst, !turns.isEmpty, let oldest = recent.first {
            effects.wakeUp = burstEnd(of: oldest)
        }
        return effects
    }

    private func mayStart(_ domain: String) -> Bool {
        let freeCount = limits.threadCount - limits.localReserve - runningCount
        return (domains[domain]?.weight ?? 0) < 2 * freeCount
    }

    private func burstEnd(of name: String) -> MonotonicTime {
        (lookUps[name]?.startedAt ?? MonotonicTime(nanoseconds: 0)).advanced(by: limits.burstDuration)
    }

    private mutating func start(_ name: String, now: MonotonicTime) {
        guard let lookUp = lookUps[name] else { return }
        lookUps[name]?.startedAt = now
        runningCount += 1
        count(lookUp.domain, wanted: 1)
    }

    private mutating func dequeue(_ name: String, of domain: String?) {
        guard let domain else { return localNames.remove(name) }
        domains[domain]?.queued.remove(name)
        if domains[domain]?.queued.isEmpty == true { turns.remove(domain) }
        count(domain)
    }

    /// Changes a domain's counts of running look-ups, and removes a domain that has become unused.
    private mutating func count(_ name: String?, wanted: Int = 0, abandoned: Int = 0) {
        guard let name else { return }
        var domain = domains[name] ?? Domain()
        domain.wantedCount += wanted
        domain.abandonedCount += abandoned
        domains[name] = domain.isUnused ? nil : domain
    }
}

/// A first-in, first-out queue of distinct elements. Removing any element takes amortized constant time.
struct RemovableQueue<Element: Hashable> {
    /// The elements in order. An entry whose ticket is not the element's current one was removed.
    private var entries = FIFOQueue<(element: Element, ticket: UInt64)>()
    private var tickets: [Element: UInt64] = [:]
    private var lastTicket: UInt64 = 0

    var count: Int { tickets.count }

    var isEmpty: Bool { tickets.isEmpty }

    var first: Element? { entries.first?.element }

    /// The number of entries in memory, those of removed elements included.
    var storedCount: Int { entries.count }

    /// Appends an element. An element that is in the queue keeps its position.
    mutating func append(_ element: Element) {
        guard tickets[element] == nil else { return }
        lastTicket += 1
        tickets[element] = lastTicket
        entries.append((element, lastTicket))
    }

    /// Removes an element. An element that is not in the queue is ignored.
    mutating func remove(_ element: Element) {
        guard tickets.removeValue(forKey: element) != nil else { return }
        // Keeps `first` valid.
        while let entry = entries.first, !isCurrent(entry) { entries.popFirst() }
        if entries.count > 2 * tickets.count + 16 { entries = FIFOQueue(entries.filter { isCurrent($0) }) }
    }

    mutating func popFirst() -> Element? {
        guard let element = first else { return nil }
        remove(element)
        return element
    }

    func first(where condition: (Element) -> Bool) -> Element? {
        entries.first { isCurrent($0) && condition($0.element) }?.element
    }

    private func isCurrent(_ entry: (element: Element, ticket: UInt64)) -> Bool {
        tickets[entry.element] == entry.ticket
    }
}

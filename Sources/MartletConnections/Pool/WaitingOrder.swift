/// Which of the requests that wait for a connection, and are equally urgent, is served first.
public enum WaitingOrder: String, Hashable, Codable, Sendable, CaseIterable {
    /// Who came first; the default.
    case firstComeFirstServed

    /// Who came last: for what somebody looks at right now, such as the pictures of a list that is scrolled.
    ///
    /// It holds among requests of one priority that came within one ``PoolLimits/ageingInterval``: one that has waited
    /// longer is the more urgent for it, and so nobody is passed over without end. With an interval of `nil` newcomers
    /// always go first; with zero nobody ever does.
    case lastComeFirstServed
}

/// What is said of an interface in place of what the machine says of it.
public struct InterfaceOverride: Hashable, Codable, Sendable {
    /// What it is; `nil` for what the machine says.
    public var kind: NetworkInterface.Kind?

    /// Whether it is expensive; `nil` for what its kind says.
    public var isExpensive: Bool?

    /// What is said; the rest stays as it is.
    public init(kind: NetworkInterface.Kind? = nil, isExpensive: Bool? = nil) {
        self.kind = kind
        self.isExpensive = isExpensive
    }
}

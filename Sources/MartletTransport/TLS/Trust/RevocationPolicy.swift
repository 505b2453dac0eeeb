import COpenSSL

/// Whether certificates are looked up in revocation lists (RFC 5280 §5).
///
/// Lists are given, never fetched: neither distribution points nor OCSP responders are asked.
public struct RevocationPolicy: Hashable, Sendable {
    /// How far up a chain is looked.
    public enum Scope: Hashable, Sendable {
        /// The server's own certificate alone.
        case leaf
        /// Every certificate but the root.
        case wholeChain
    }

    /// The lists, in PEM (any number in one text) or DER (one); none: nothing is looked up.
    public var lists: [PEMSource]

    /// How far up the chain is looked; each authority concerned must have a list.
    public var scope: Scope

    /// Whether a list whose time for the next update has passed still counts. Off by default: a certificate revoked since
    /// would be missed, so the connection fails with ``TLSError/Kind/revocationUnknown(reason:)``.
    public var acceptsExpiredLists: Bool

    /// Whether a certificate whose authority has no list is taken as not revoked. Off by default: the connection fails with
    /// ``TLSError/Kind/revocationUnknown(reason:)``.
    public var acceptsMissingLists: Bool

    /// Nothing is looked up; the default.
    public static let none = RevocationPolicy(
        lists: [], scope: .leaf, acceptsExpiredLists: false, acceptsMissingLists: false)

    /// These lists.
    public static func lists(
        _ lists: PEMSource..., scope: Scope = .wholeChain, acceptsExpiredLists: Bool = false,
        acceptsMissingLists: Bool = false
    ) -> RevocationPolicy {
        RevocationPolicy(
            lists: lists, scope: scope, acceptsExpiredLists: acceptsExpiredLists,
            acceptsMissingLists: acceptsMissingLists)
    }

    var isOn: Bool { !lists.isEmpty }
}

/// A certificate revocation list (RFC 5280 §5), owned.
@safe package final class RevocationList {
    /// OpenSSL's object.
    package let pointer: OpaquePointer

    /// Takes over a reference.
    package init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

    deinit { unsafe X509_CRL_free(pointer) }

    /// The lists of a source, at least one.
    static func lists(of source: PEMSource) throws(TLSError) -> [RevocationList] {
        try PEMReader.objects(
            of: source, fault: TLSError.Kind.revocationList, none: "no revocation list in it",
            PEMReader.revocationLists)
    }
}

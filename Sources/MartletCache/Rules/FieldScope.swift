/// What a `no-cache` or `private` directive is about (RFC 9111 §5.2.2.4, §5.2.2.7).
package enum FieldScope: Equatable, Sendable {
    /// The whole response.
    case response
    /// These fields of it alone, by their names in lower case, sorted, each once; never empty.
    case fields([String])

    /// Both scopes together: the whole response where one is about it.
    func union(_ other: FieldScope?) -> FieldScope {
        guard case .fields(let mine) = self else { return .response }
        switch other {
        case .fields(let others): return .fields(Set(mine).union(others).sorted())
        case .response: return .response
        case nil: return self
        }
    }
}

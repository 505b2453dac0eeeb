/// What becomes of a document type declaration (XML 1.0 §2.8).
///
/// Nothing outside the document is ever read, and no entity is ever declared: neither can a document make others be
/// fetched, nor grow by expansion.
public enum XMLDoctypeRule: String, Hashable, Sendable {
    /// It is an error.
    case refuse
    /// It is reported by name and identifiers, and otherwise skipped. What skipping would give another meaning is an error:
    /// declarations of entities, default values of attributes, references to parameter entities. Declarations of
    /// elements, attributes and notations are passed over, and of them only quotes and brackets are checked.
    case skip
}

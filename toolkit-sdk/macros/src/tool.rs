//! The attribute `#[tool(…)]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::LitStr;

use crate::egress;
use crate::signature::{Attribute, Problems, Signature, at, attribute_list};

const KNOWN_ATTRIBUTES: &str = "read_only, destructive, idempotent, open_world, important, no_auth, tags(\"…\"), synonyms(\"…\"), \
                     scopes(\"…\"), egress(\"…\"), name = \"…\", slug = \"…\", example = r#\"{…}\"#";

#[derive(Default)]
struct Attributes {
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
    important: bool,
    no_auth: bool,
    tags: Vec<LitStr>,
    synonyms: Vec<LitStr>,
    scopes: Vec<LitStr>,
    egress: Option<Vec<LitStr>>,
    name: Option<LitStr>,
    slug: Option<LitStr>,
    examples: Vec<LitStr>,
}

pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let attributes = Attributes::read(attributes)?;
    let signature = Signature::read(item, "tool")?;
    if let Some(second) = signature.inputs.get(1) {
        let hint = "put all arguments into one struct with `#[derive(Deserialize, JsonSchema)]`";
        return Err(syn::Error::new_spanned(
            second,
            format!("a tool has one argument; {hint}"),
        ));
    }
    registration(&attributes, &signature)
}

impl Attributes {
    fn read(tokens: TokenStream) -> syn::Result<Self> {
        let mut read = Self::default();
        let mut problems = Problems::default();
        for word in attribute_list(tokens)? {
            let place = word.name.clone();
            if let Err(error) = read.take(word) {
                problems.push(error);
            } else if read.read_only && read.destructive {
                problems.add(
                    &place,
                    "a tool that is `read_only` cannot be `destructive`; remove one of them"
                        .to_owned(),
                );
            }
        }
        problems.finish()?;
        Ok(read)
    }

    fn take(&mut self, word: Attribute) -> syn::Result<()> {
        match word.name.to_string().as_str() {
            "read_only" => self.read_only = word.flag()?,
            "destructive" => self.destructive = word.flag()?,
            "idempotent" => self.idempotent = word.flag()?,
            "open_world" => self.open_world = word.flag()?,
            "important" => self.important = word.flag()?,
            "no_auth" => self.no_auth = word.flag()?,
            "tags" => self.tags.extend(word.texts()?),
            "synonyms" => self.synonyms.extend(word.texts()?),
            "scopes" => self.scopes.extend(word.texts()?),
            "egress" => self.egress.get_or_insert_default().extend(word.texts()?),
            "name" => self.name = Some(word.text()?),
            "slug" => self.slug = Some(word.text()?),
            "example" => self.examples.push(object(word.text()?)?),
            _ => {
                return Err(syn::Error::new(
                    word.name.span(),
                    format!("`{}` is unknown; known are {KNOWN_ATTRIBUTES}", word.name),
                ));
            }
        }
        Ok(())
    }
}

/// Checks that an example is a JSON object.
fn object(text: LitStr) -> syn::Result<LitStr> {
    match serde_json::from_str::<serde_json::Value>(&text.value()) {
        Ok(serde_json::Value::Object(_)) => Ok(text),
        Ok(_) => Err(syn::Error::new(
            text.span(),
            "an example is a JSON object, the arguments of one call: r#\"{…}\"#",
        )),
        Err(error) => Err(syn::Error::new(
            text.span(),
            format!("this example is not JSON: {error}"),
        )),
    }
}

fn registration(attributes: &Attributes, signature: &Signature) -> syn::Result<TokenStream> {
    let Attributes {
        read_only,
        destructive,
        idempotent,
        open_world,
        important,
        no_auth,
        tags,
        synonyms,
        scopes,
        examples,
        ..
    } = attributes;
    let function = &signature.function;
    let ident = signature.ident();
    let suffix = signature.suffix(attributes.slug.as_ref())?;
    let title = signature.title(attributes.name.as_ref());
    let description = &signature.description;
    let tags = important
        .then(|| quote!("important"))
        .into_iter()
        .chain(tags.iter().map(|tag| quote!(#tag)));
    let egress = egress::option(
        attributes
            .egress
            .as_deref()
            .map(egress::rules)
            .transpose()?,
    );

    let answers = at(&signature.output);
    let output = quote_spanned!(answers=> ::toolkit_sdk::rt::output_schema);
    let (result, input) = match signature.inputs.first() {
        None => (
            quote_spanned!(answers=> super::#ident()),
            quote!(::toolkit_sdk::rt::no_input_schema()),
        ),
        Some(argument) => {
            let takes = at(argument);
            let read = quote_spanned!(takes=> ::toolkit_sdk::rt::arguments(arguments)?);
            let schema = quote_spanned!(takes=> ::toolkit_sdk::rt::input_schema);
            (
                quote_spanned!(answers=> super::#ident(#read)),
                quote!(#schema(super::#ident)),
            )
        }
    };
    let run = quote_spanned!(answers=> ::toolkit_sdk::rt::answer(#result));
    let outcome = match signature.inputs.first() {
        None => quote_spanned!(answers=> #output(|()| super::#ident())),
        Some(_) => quote_spanned!(answers=> #output(super::#ident)),
    };
    let arguments = if signature.inputs.is_empty() {
        quote!(_)
    } else {
        quote!(arguments)
    };
    Ok(quote! {
        #function

        #[doc(hidden)]
        pub(crate) mod #ident {
            pub(crate) const REGISTRATION: ::toolkit_sdk::rt::ToolRegistration = ::toolkit_sdk::rt::Registration {
                entry: ::toolkit_sdk::rt::Tool {
                    function: ::core::stringify!(#ident),
                    suffix: #suffix,
                    run: |#arguments| #run,
                },
                describe: |prefix| ::toolkit_sdk::rt::manifest::Tool {
                    slug: ::std::format!("{prefix}_{}", #suffix),
                    name: ::std::string::String::from(#title),
                    description: ::std::string::String::from(#description),
                    input: #input,
                    output: #outcome,
                    loose_output: false,
                    hints: ::toolkit_sdk::rt::manifest::Hints {
                        read_only: #read_only,
                        destructive: #destructive,
                        idempotent: #idempotent,
                        open_world: #open_world,
                    },
                    tags: ::std::vec![#(::std::string::String::from(#tags)),*],
                    synonyms: ::std::vec![#(::std::string::String::from(#synonyms)),*],
                    scopes: ::std::vec![#(::std::string::String::from(#scopes)),*],
                    egress: #egress,
                    no_auth: #no_auth,
                    examples: ::std::vec![#(::toolkit_sdk::rt::example(#examples)),*],
                },
            };
        }
    })
}

"""The weights of features, of definitions and contents; written by ``tools/fit_instruction_weights.py``.

Each line has a weight and the features that have it, two spaces between them.
"""

from typing import Final

DEFINITIONS: Final = """
-0.194  "
-0.192  #first #talk
-0.184  #first #model
-0.182  e g
-0.174  #care
-0.172  by .. user
-0.17  ^
-0.168  an
-0.166  #first #secret  ^ alway  do not
-0.164  #identifier #in text
-0.158  #in text #open
-0.154  eine  personal data
-0.152  such as
-0.15  #known model  #use #user
-0.146  to .. to
-0.144  #no #personal  pass  such
-0.14  #in text #known secret  permission .. the
-0.138  can  the server
-0.136  #in text #no  a note
-0.132  #obey #you  ^ prefer
-0.13  #about #first  #known secret  #obey #telling prior  mention .. user  other tool  {
-0.128  #model #telling prior  #open #user  http .. com  x0 .. 0
-0.126  error  or
-0.124  #form #in text  before  empty
-0.122  be .. in  unless
-0.12  #care #in text  #in parameter #returns  prefer  use
-0.118  #known thing  service  sign  you .. a
-0.116  #care #secret  #first #give  #their #trigger  add  cannot  mention .. the
-0.114  #in parameter #trigger  attempt  get the  include  the .. get
-0.112  customer  page  using  valu  write
-0.11  #give #obey  ` x0  call this  com  example :  step  tell .. user  }
-0.108  0  when you
-0.106  #in text #known model  ^ use  before you  mcp
-0.104  #about  #first #obey  #form  #model #user  character  my  once  per  the tool
-0.102  #divert #in parameter  #no #secret  #obey #thing  ^ `  get  header  stop
-0.1  #before #identifier  #their #use  : 0  ^ example  can't  did  tool of  x0 `
-0.098  action  com /  this .. user
-0.096  #consent #user  #in text #known thing  #open #telling rules  ^ pass  and .. a  are  data  g  information  of .. server  see http  task  thread
-0.094  #bias  #forced #say  #returns #secret  a .. in  a .. on  for the  object  prefer .. over  tell  uses
-0.092  #first #their  ^ show  case  e mail  role  stag  support  to .. id  use .. tool  مع
-0.09  #about #telling rules  #excuse #telling prior  #first #harm  #office #telling rules  #returns #their  : '  bitte  match .. the  no .. the  of .. to  organization  prompt .. the
-0.088  #before #open  #first #office  #first #personal  ' ignore  0 :  be  git  of .. as  one  only  only .. the  previou  respect  sign in  width
-0.086  #consent #duty  #give #telling ignore  #known obey  #open #talk  ' '  ^ "  ^ system  a .. a  allow  an .. a  current  exampl  name of  runs  the chart  verify  zero
-0.084  #divert #say  #excuse #first  #first #user  #known user  ^ set  after  event  must  requir  sent  set  start
-0.082  #before #consent  #before #in text  #in parameter  #in parameter #quoted  a  a message  after the  as .. x0  content .. a  edit  exact  keys  request to
-0.08  " "  #discredit #use  #in text #known user  #known use  #returns #say  : `  ^ url  ` curl  is sent  not  pass .. the  password  plain  search  see  text as  that .. user  uma  with .. name  yaml
-0.078  #first #param  #form #identifier  #form #personal  #in text #known use  #in text #take  ^ run  ^ the  command  creat  element  log  not .. to  of .. conversation  one .. the  record  release  script  system  unless the  up the  with .. only  within
-0.076  #ask #user  #in output  #no #returns  #rank #telling prior  ^ emite  ^ path  ^ support  a .. before  application  benutzer  config  del  emite  secret  specific  the server'
-0.074  #about #telling file  #address #secret  #consent #take  : "  already  hello  list  two number  you must
-0.072  #about #you  #form #secret  #identifier #please  #in text #not harm  ^ call  ^ check  ^ data  ^ start  ^ whether  a password  before .. it  consulta  conversation  dem .. muss  like  short  single  to read  una  updat  user has  कष
-0.07  #address #in parameter  #no #not harm  #not harm  #obey #returns  #office #telling prompt  / ssh  ^ requir  asks the  call .. the  encod .. the  file to  know  language  path  relevant  search the  syntax  that the  this conversation
-0.068  #consent #form  #in text #use  #own parameter #telling ignore  #returns #self  #returns #thing  / docs  ^ print  app  before .. tool  bot  caller  chang  enough  model  parameter  post  read the  reset  resource  return .. of  the page  «  »
-0.066  #in parameter #own parameter  #known talk  ^ return  a .. or  alway  are kept  as .. or  call .. first  change  decod  if .. is  is .. is  muss der  omitt  other .. of  out .. and  read .. before  resourc  return .. as  show .. of  text .. a  than  tool .. server  tool .. this
-0.064  #form #telling prior  #identifier #no  #in parameter #known thing  #known user #use  #no #telling rules  ^ '  ^ ask  ^ create  ^ query  ^ translate  ^ vor  bank app  between .. and  how  iso  need the  or a  out  so .. the  support .. and  user for  vor dem  x0 .. for
-0.062  #forced #trigger  #known self #telling rules  #talk #telling rules  #trigger #you  ^ hidden  ^ secret  ` `  ` and  between  by the  extract  ignor  in .. app  in the  notification  nur  relat  return by  tell .. to  this server  to .. file  to .. for  to an  use .. for  user agent  where  xml
-0.06  #first #rank  #form #trigger  #in parameter #known secret  #not say #trigger  #office #returns  #secret #talk  #then #use  are .. from  cannot be  graph  if  into  is written  read .. of  redact  so .. you  the .. fail  ticket  toujour  x
-0.058  " :  #every #take  #first #thing  #in text #secret  = 0  an image  beginn of  call .. before  create a  den  file .. a  for  is .. the  not .. them  of .. in  of .. page  on .. for  the .. if  the .. url  to .. it  to .. or  use this
-0.056  #ask #first  #before #telling ignore  #care #not use  #every #telling prior  #first #take  #known use #user  #no #telling prior  #rank #telling ignore  #secret #silent  a .. as  a .. its  adds .. number  as .. and  chart .. an  collection  contain  execut  for .. with  invent  of .. or  overrid  project  record .. the  remov  set the  should be  test  the .. current  think  to the  url .. the  who  x0 .. hello
-0.054  #ask #returns  #before #known thing  #in text  #known thing #model  #telling ignore #trigger  / www  ^ adds  a .. and  a .. so  against  as data  be .. 0  cross  dem  install  provide  queri  run .. on  sentry  the .. agent  usuario  when .. a  whether to  www
-0.052  #excuse #returns  #first #form  #in text #known talk  #in text #not give  #in text #not obey  #no #not obey  #no #others  #not obey  #param #trigger  #returns #talk  / config  ^ each  ^ execute  ^ password  a .. against  als  can be  check .. the  cursor  default to  endpoint  file  fiscal  for example  if a  in .. file  mail  muss  name .. the  personal  schema  send .. mail  stay  tabl  text .. is  the .. cannot  titl  upload a  use .. or  user .. a
-0.05  #about #param  #divert #give  #form #param  #give #thing  #in parameter #known model  #known thing #telling ignore  #returns #whole  ^ review  chang .. the  compare  generat .. password  must .. with  on .. the  pas  request .. with  text :  the url  this .. a  to .. default  user .. in  version  what to  ह
-0.048  #about #secret  #about #self  #in parameter #param  #no #whole  #param #use  ' or  ^ read  a new  another  as .. not  ask .. user  before .. other  bucket  city  in .. so  instead  must be  on a  one time  only .. user  process  pull request  search for  show .. a  stor .. the  style  the .. configur  the .. default  the .. has  the project  to .. in  trace  user .. for  user .. this
-0.046  #address #in label  #care #thing  #give #telling file  #identifier #thing  #no #telling ignore  #returns #silent  :  : /  ^ decod  a .. message  a .. user  a pull  analysi  at .. of  back  browser  commit  docker  encod  example com  find the  for password  issu  job  logg  on .. and  own  prompt injection  ssh /  the .. after  the .. any  the .. graph  this .. by  title  to .. model  use .. when  vat  with a  you can
-0.044  #consent #first  #duty #returns  #every #office  #first #self  #first #telling prior  #form #give  #form #not use  #form #telling ignore  #give #harm  #in parameter #known use  #office #take  #quoted #use  ^ fetch  key is  of .. from  of .. name  org /  plac  private  pull  rather  rather than  return .. 0  sent to  the .. ssh  the new  typed  user and  whether  with .. user
-0.042  #excuse #form  #form #telling rules  #identifier #purpose  #no #obey  #open #trigger  #please #use  #quoted #returns  #quoted #you  #returns #take  #take #telling file  #take #telling rules  : http  : no  ^ take  a .. for  ask the  click  configur  for .. the  generate  list the  open  password or  the .. unless  the chat  upload .. file  weather .. city  when .. are
-0.04  #about #returns  #about #take  #about #thing  #before #use  #care #user  #consent #thing  #duty #silent  #in text #thing  #model #telling rules  #returns #you  #talk #user  #telling ignore #thing  : [  ^ store  add a  ante de  any .. this  as x0  directly  enter  exist  is .. from  it in  maximum  messag  path to  several  stor in  take  the current  to .. only  use .. before  use .. you  with `  त
-0.038  #ask #open  #divert  #first #you  #obey #telling rules  #personal #silent  #talk #their  ^ get  ^ repository  ^ write  a .. that  description .. the  do .. use  is .. server  is return  isn't  it as  not use  precedence over  repository name  save  the .. never  the recipient  this is  to .. before  “
-0.036  #before #care  #first #no  #known use #trigger  #no #self  #open #say  #param #thing  #telling rules #thing  ^ credential  ^ scan  a .. without  byte  connect to  documentation  fetch  not .. or  or .. are  page .. the  provid  read .. the  response  that you  type  user .. and  variabl
-0.034  #care #no  #consent #every  #duty #known thing  #duty #you  #first #say  #in text #purpose  #purpose #use  #returns #use  a .. with  access .. the  and  and is  clear  convert  duration  e .. address  first and  get a  is .. not  javascript  kubeconfig  of this  path .. file  secret .. the  text  the .. by  the .. of  the test  time .. the  user .. to
-0.032  #care #duty  #consent #their  #returns  /  ^ upload  ` as  a user  all .. a  as .. for  describe  email  ids  instruction  les  never  new  org  place  send an  set .. of  stor a  the .. environment  to .. repository  what .. user  { "
-0.03  #before #you  #care #give  #care #known thing  #personal #returns  #purpose  #take #telling prior  ^ add  ^ name  ^ only  a specific  account  alert  and .. 0  before .. to  credential .. the  detail  don't .. the  format code  it .. and  keyword  need .. the  of an  only .. allow  or .. from  participant  summary  take precedence  the .. command  the .. page  the id  tool for  unless .. is  when .. in  written
-0.028  #care #consent  #care #open  #give #param  #in value  #model #use  #no #thing  #take #telling reset  ^ output  a .. question  a single  an .. request  asks  based  chat  confirm  docs  fact  http .. org  in .. format  instead of  miss  need .. of  number .. 0  of .. it  of .. of  on .. page  runs .. of  system prompt  the .. should  to return  use it  will be
-0.026  #before #purpose  #before #quoted  #every #obey  #identifier #in parameter  #known thing #no  #say #secret  ^ all  ^ don't  ^ if  ^ list  ^ open  a .. to  before `  connect  default  knowledge  mail address  open a  outside  path .. the  pdf  precedence  query  return  the .. must  whenever  x0 .. and  you
-0.024  #first #then  #rank #take  #telling prior #use  : use  ^ extract  ^ include  ^ result  and x0  as .. are  for a  for this  form  knowledge graph  one of  return .. with  source  the .. file  the .. policy  the connect  to .. of  translate  unless .. user  when  work  x0 :  必
-0.022  #about #model  #care #form  #duty #thing  #every #in text  #every #talk  #first #whole  #form #office  #identifier #use  #in parameter #silent  #known take #use  #office #talk  #param  / id  0 `  ^ appli  ^ generate  ^ gets  ^ http  a .. repository  a .. time  a github  b  by id  client .. the  discover  github repository  it for  specifi  the .. asked  tool when  treat  up to  use .. user
-0.02  #every #say  #excuse #use  #form #known use  #in text #known give  #model #returns  #open  #secret #then  / /  a .. id  an http  at  contain the  done  grep  ignore  in .. by  key .. the  name  never .. the  show the  take a  the .. says  the query  then  they .. it
-0.018  #about #talk  #divert #thing  #first #silent  #first #use  #form #no  #in text #whole  #open #secret  a .. agent  a .. the  address  each  for .. and  of .. query  private key  sms  that .. in  the .. first  the .. point  uses the
-0.016  #ask #trigger  #before #silent  #before #user  #consent  #every #returns  #in parameter #known obey  #in text #known personal  #known secret #no  #own parameter #then  #telling unasked #user  #thing #whole  = "  ^ no  ^ search  ^ what  alway .. the  complete  don't  id  injection  must .. the  should .. the  that is  the .. each  the .. itself  use .. the
-0.014  #divert #trigger  #give #you  #harm #say  #quoted  #self #use  against the  all  and .. to  description  full .. of  handle  run the  the .. one  token .. the  user  when a
-0.012  #in text #returns  #others #telling others  #personal #secret  #then #you  are .. to  content .. file  el  is set  run  show  stor  the text  the value  time
-0.01  #consent #in text  #every #quoted  #form #returns  #take #use  0 character  appli  default is  mcp server  notion  optional  other .. this  the .. token  to 0
-0.008  #before #duty  #divert #use  #duty #no  #every #others  #forced  #give #known thing  #identifier #take  #in text #known take  #personal #user  #quoted #telling prior  #telling prior  #thing #trigger  '  a .. of  access  and return  find .. a  ignore .. instruction  made  mention  prompt  result .. the  scan  should  the .. app  the .. it  to a  with
-0.006  #param #telling file  #rank #returns  #talk #then  #telling quiet #user  0 .. request  adds  and .. as  and .. at  are not  get .. a  important  list .. the  list of  the .. to  the plan  wrong
-0.004  #first #telling file  #form #harm  #give #own parameter  #secret #trigger  #self #thing  #telling rules #you  #thing #user  #trigger  ` in  http  in .. to  this .. to  unit  what the
-0.002  " }  #duty #quoted  #excuse #then  #give #no  #harm #no  #in parameter #telling file  #known take  #self  #silent #telling prior  ^ file  a .. e  do .. this  output  second  the .. for  the .. with  use `  you need
0.002  #about #harm  #duty #use  #excuse #user  #form #take  ^ send  is  use .. to  |
0.004  #duty #whole  #every #first  #form #model  #not give #user  #not say #user  ^ full  and .. for  do .. the  from  from the  of .. the  search .. the  the .. text
0.006  #about #in text  #form #in parameter  #form #obey  #give #take  #no #their  #obey #use  #own parameter #say  #say #you  #telling file #use  #trigger #use  #use #you  card  das  includ  sets  so that  that .. to
0.008  #about #every  #form #self  #others #trigger  #say  #say #then  ^ creat  branch  entiti  find  input  when .. is
0.01  #address #use  #duty #their  #in text #self  #model #self  #telling file #telling prior  [  ^ find  de  is .. for  is .. to  is kept  not tell  now  suggest  the .. its  the .. the  warning  x0 .. the
0.012  #consent #quoted  #every #give  #excuse #in text  #excuse #thing  #give #in text  #identifier #model  #in parameter #user  #known take #user  #model #office  #no  #then #whole  ^ it  or .. the  session  term
0.014  #before #every  #every #self  #in parameter #telling prior  #model #param  #model #personal  #param #secret  are .. in  request  which  would
0.016  #duty  #excuse #own parameter  #give #their  #in text #please  #own parameter #trigger  #param #then  #returns #telling file  #take #whole  ^ 0  ask  do  environment  instruction .. the  target  the user  to .. the
0.018  #ask #in text  #first #telling ignore  #give #returns  #identifier #returns  #others #secret  #others #thing  #others #use  #own parameter  #take #thing  #use  ^ before  ` tool  also .. the  by .. the  check  delet  safe
0.02  #duty #own parameter  #duty #user  #forced #give  #in parameter #thing  #in text #telling harm  #lasting  #telling ignore  #telling others #thing  copy  do .. tell  en  model :  patient  put  the same  this session  to
0.022  #about #trigger  #before  #before #others  #personal #talk  #telling ignore #telling prompt  #telling prompt  a repository  have  human  if the  imag  inspect  is .. in  newest  noth  run .. the  team  that .. be  to .. a
0.024  #in text #trigger  #known personal  #silent  as .. of  flag  in `  list .. in  not .. for  ssh .. rsa  the .. argument  the last  with .. for  you .. the
0.026  #consent #open  #duty #telling others  #every #param  #every #telling others  #in text #you  #model #whole  #office #thing  #say #thing  #secret #telling prior  #self #whole  aws  base  context  download  generat  github  id rsa  latest  of .. session  read a  repository  rsa  send a  text to  the model  their  value
0.028  #divert #known thing  #excuse  #harm #in text  #in text #their  #in text #then  #no #telling unasked  #own parameter #take  #please  are .. as  of .. are  same  the .. all
0.03  #divert #identifier  #every #telling file  #give #in parameter  #harm #talk  #in text #not use  #no #office  #office #whole  #talk #trigger  / x0  do .. for  env  need  of .. is  order  store  the user'  user'  while
0.032  #about #give  #about #known give  #every #you  #first #others  #in parameter #office  #in text #user  #known give #use  #rank  #secret #their  ^ format  ^ inspect  consider  content .. the  content from  explicitly  format  in  other .. tool  room  send  the .. line  the .. this  without  your
0.034  #about #open  #before #talk  #before #telling prior  #discredit #no  #duty #trigger  #model #secret  #no #trigger  #office #trigger  #own parameter #thing  #take  ^ number  afterward  all .. the  and .. have  and .. the  and pass  aws /  belong  cloud  password .. the  return a  table  the .. messag  the `  to it  to run  what  window
0.036  #address #talk  #before #not take  #duty #others  #first #open  #harm #obey  #in text #personal  #in text #talk  #in text #telling title  #office #others  #office #their  #self #telling reset  0 .. of  api  appear  as .. the  before the  find a  in .. x0  it is  machine  please  session .. the  the latest  up a  with .. it
0.038  #address #excuse  #ask #telling ask  #ask #telling prior  #give #telling others  #in parameter #whole  #known give  #open #telling ask  #open #telling prior  #take #user  #then  a date  and .. x0  first  github token  kindly  owner  people  read  right  search .. in  share  the other  writ  übergeben
0.04  #about #excuse  #address #trigger  #consent #trigger  #divert #others  #duty #telling keep  #identifier #known give  #in text #telling models  #no #not use  #not use  #obey #say  #own parameter #telling file  #secret #use  #secret #you  ^ in  a .. query  asking  document  each .. the  expression  for .. before  gather  in a  ist  it .. that  label  last  package  that  the .. request  the .. return  the .. you  the person
0.042  #address #before  #ask #in parameter  #every #known give  #give #please  #identifier #others  #in text #telling others  #lasting #thing  #no #open  #others #own name  #own parameter #secret  #take #you  #telling others #trigger  #their #thing  0 and  a text  added  and .. by  approval  are .. by  best  cdn  cooki  evaluat  it .. the  line .. the  of .. other  other  profile  send .. the  the  the .. chart  to .. with  which the  with .. in
0.044  #address #identifier  #before #say  #before #telling file  #before #telling quiet  #consent #telling agreed  #duty #forced  #duty #model  #form #own parameter  #give #model  #give #telling quiet  #in parameter #no  #in text #lasting  #known give #user  #known thing #telling prior  #own parameter #please  #thing #use  #trigger #user  >  ^ a  ^ any  a file  a question  as .. in  be .. as  both  chart .. is  decode .. follow  dies  etc /  for all  home  http .. 0  is .. with  namespace  of .. has  present  the .. explicitly  the .. like  tool `  up  user explicitly  what .. the  with .. to  with it
0.046  #form #quoted  #give #office  #give #quoted  #give #telling prior  #harm #personal  #identifier #obey  #known thing #user  #no #you  #not give #open  #office #telling title  #others #you  #personal #use  #telling title  ^ [  ^ your  call .. and  list .. of  need to  pem  side  text .. the  the .. most  the .. store  the .. that  the .. them  this tool  those .. the  to .. 0  were  with .. of  word .. the  you .. and  zu übergeben
0.048  #about #address  #about #duty  #before #secret  #duty #identifier  #duty #obey  #every #thing  #excuse #telling rules  #give #silent  #harm #use  #in parameter #obey  #in text #quoted  #known thing #talk  #model #telling models  #self #telling ignore  #talk #telling prior  #telling prior #trigger  ?  ^ public  and .. it  and .. one  built in  confirmation  does  from .. and  hex  hint  holiday  in .. repository  instruction and  it  notice  part of  public holiday  region  tax  text of  the .. export  the .. owner  the .. server  the line  ~ /  и
0.05  #before #trigger  #consent #give  #every #excuse  #excuse #give  #forced #take  #form #whole  #give #others  #harm  #known thing #take  #known thing #trigger  #open #use  #talk #use  #telling harm #user  #trigger #whole  ^ generat  attach  eht dnes  evil test  forward the  http .. test  metric  of .. team  photo  question  until  word  ~
0.052  #consent #obey  #in parameter #please  #lasting #use  #model #rank  #param #take  #telling file #then  #telling prompt #you  / etc  ^ make  ^ optional  ^ to  agre  and .. of  archive  call  code in  do .. user  generat a  home directory  hook  its  non  on .. it  para  rate  the .. read  the .. up  use .. as
0.054  #divert #every  #duty #talk  #every #own name  #give #secret  #identifier #trigger  #in value #whole  #office #user  #others #talk  #telling models  #telling rules #whole  a .. do  answer  as .. e  compar two  delete  eht .. eht  emoji  for .. a  hand .. the  http :  in .. time  line  list .. and  message .. of  obey  of .. call  or .. to  prompt for  replac  seed  the .. address  the .. x0  their .. and  this  to .. them  tool .. is  use .. and  with the  في
0.056  #ask #form  #care #telling others  #discredit #others  #give #trigger  #harm #please  #identifier #secret  #in text #telling rules  #no #take  #silent #telling keep  #thing  bank  be .. to  but  from .. the  info  internal  is to  message .. to  need .. be  the .. so
0.058  #before #own name  #duty #give  #every #in parameter  #every #model  #every #rank  #identifier #then  #in parameter #model  #known thing #personal  #own name #returns  0 .. are  : x0  and .. on  away  etc  every  from .. text  http .. example  make  name are  number  of .. a  of .. repository  of ~  otherwise  packag  permission  pods  star  the .. session  true  up .. 0  when .. the  with .. and
0.06  #address #duty  #before #known give  #duty #every  #duty #secret  #in text #office  #in text #silent  #no #telling keep  #no #then  #not use #telling prior  #office #telling prior  #own parameter #talk  #telling agreed  #then #thing  image  is .. as  it .. in  list .. tool  may be  quality  reason  stat  station  sync  the .. but  the .. from  to .. so  told  with .. true  word in
0.062  #before #please  #divert #you  #duty #harm  #every #form  #in parameter #use  #in text #telling prompt  #model #quoted  #no #not take  #no #own parameter  #not take  #please #say  #please #take  #quoted #user  #say #trigger  #telling unasked  #their #user  <  ^ do  ^ when  and .. what  code  count  file .. read  has .. to  im  it .. as  its .. to  radio  recommend  register  sans  sh  shell  so .. can  submit  the .. server'  them as  wallet  x0 .. x0
0.064  #discredit  #duty #office  #give #user  #in text #telling obey  #open #then  #silent #trigger  / ?  ? d  built  d =  desk  e envie  filesystem  five  from .. server  is a  it has  it to  list .. request  multiple .. a  present .. the  setting  the .. work  to this  tool is  trust  what it  you were
0.066  #before #their  #consent #telling harm  #give #personal  #harm #in parameter  #in text #own name  #in text #telling reset  #own name  #own parameter #returns  #param #whole  #quoted #telling others  #telling others  #telling others #you  #user #you  / credential  ^ non  ^ stor  a team  and .. list  da  figur  for .. to  in .. of  is .. and  runs .. query  sh |  the content  the conversation
0.068  #care #returns  #form #thing  #form #you  #known thing #own parameter  #not say #silent  #quoted #then  #telling ignore #user  #their  0 0  ^ as  a namespace  for .. 0  from .. to  if .. the  its .. is  list .. namespace  mail .. and  mirror  previou .. the  reply  ten  when the  why  x0 [
0.07  #discredit #telling others  #every #known take  #give #identifier  #identifier #telling prior  #in text #not say  #in text #own parameter  #no #not say  #not say  #others #returns  #personal #their  #telling prior #whole  #telling reset  ^ first  ^ where  and .. be  and .. them  direction  du  example  letter  named  pdfs  the .. tool  the repository  to .. as  too
0.072  #before #obey  #before #returns  #harm #office  #in text #telling keep  #known give #then  #own name #trigger  #personal #trigger  #telling ignore #telling prior  #telling obey #user  #telling others #use  #then #trigger  #whole  ^ target  a .. request  by .. date  dnes  if .. asks  merg pdfs  of  preview  reviewer  shell .. the  tag  the .. your
0.074  #address #known give  #consent #silent  #duty #excuse  #give #talk  #in parameter #open  #model #thing  #their #then  dans  drop  example /  in .. and  it .. not  limit  list pods  of .. by  of a  pend  pick  pods .. a  server  setup  the .. were  this .. as  to .. example  und  छल  छल .. द  द श  प छल  श
0.076  #duty #self  #form #user  a .. by  a project  and .. not  assistant .. the  bash  even .. the  hold the  is not  of `  pods .. namespace  the .. and  the .. left  with .. the
0.078  #ask #give  #in text #param  #own parameter #whole  #telling harm  #telling harm #then  a document  all tool  current .. in  does not  is .. be  on  payment  prior to  sort by  the .. time  the owner  this .. is  this one  to http
0.08  #address #every  #address #quoted  #before #param  #divert #in text  #model #own parameter  0 .. x0  =  = =  ^ ignore  as .. to  branch .. a  branch .. repository  current .. a  extra  if .. user  json  of .. tool  order is  that .. was  the assistant
0.082  #about #then  #address #then  #duty #take  #excuse #secret  #first #returns  #in text #telling later  #in text #telling unasked  #lasting #secret  be .. the  by .. of  come  conversa  decode and  has  it .. it  it with  sort  to .. by  tool as  you .. for  не  об  об этом  этом
0.084  #give #known take  #harm #trigger  #known thing #use  #self #you  #talk  #user  0 .. the  ^ keep  as .. a  compar  count word  country  force  it .. be  it .. to  nc  report  school  slow
0.086  #own parameter #personal  #own parameter #telling prior  #telling prompt #whole  0 /  even when  is .. its  known  list .. a
0.088  #  #before #harm  #duty #telling prior  #identifier #user  #in parameter #others  #in value #thing  #no #say  #office #then  #user #whole  0 .. to  by .. or  by .. this  call .. with  choice  collect  e  font  helper  openai  point .. or  request of  return .. in  the .. mcp  with .. or  à
0.09  #consent #harm  #discredit #in text  #duty #rank  #personal #take  #talk #whole  #telling agreed #user  #telling role #you  about  answer .. the  connector  department  dna  recovery  speak .. text  speak a  the .. connector  the .. in  the .. prompt  the .. their  the password
0.092  #before #whole  #divert #user  #duty #telling file  #every #use  #open #silent  #returns #telling others  #telling obey  [ x0  a chart  been  by  host  incl  partner  phase  send .. request  the .. as  the .. data  use the
0.094  #address #harm  #forced #use  #known personal #take  #own parameter #use  #telling reset #telling rules  begin  box  converter  count .. a  evil  found  in this  leak  rate limit  search code  senha  way  y
0.096  #in text #telling file  #no #quoted  #telling prior #telling reset  clos  enc  gb  powershell  report .. of  them .. the  with .. tool
0.098  #before #in parameter  #before #personal  #identifier #quoted  #in parameter #you  #obey #please  #others  #rank #user  #telling prior #user  ^ with  as  found in  gb gur  head  ip  not be  shown  the .. is  they  time .. a  you have
0.1  #before #model  #consent #say  #excuse #in parameter  #form #in value  #identifier #in value  #in value #secret  #no #telling quiet  #personal #you  #self #telling prior  #telling role  #use #whole  ^ count  auch  content of  gur .. gur  in .. is  so  these  x0 x0
0.102  #known user #open  #no #use  #obey  #open #their  #then #user  ^ speak  are .. and  enc x0  full  has been  lo  speak
0.104  #first  #harm #model  #own name #use  #own parameter #user  #telling prior #telling rules  0 x0  are .. be  even  need not  of 0  open .. the  part  reference
0.106  #in text #say  #in text #telling role  ^ #  ^ compar  ^ merg  apply  assistant  due  out .. the  this .. are
0.108  #address #in value  #consent #model  #give #use  #in text #rank  #model #take  ^ other  daer  la  read .. file  the .. are  they are
0.11  #model #no  #obey #then  #telling marker  ^ pod  and the  are to  das .. der  found .. the  hold  tail  turn
0.112  #telling file #thing  #you
0.114  #give #in value  #identifier #telling others  merg  naq .. gur  them
0.116  #consent #telling unasked  #in parameter #their  #no #user  #secret  #secret #take  elif  lla
0.118  #identifier #whole  #known give #take  : the  car  take the  texto
0.12  #give  #telling rules  ^ tail  code .. the  public  us
0.122  #every  #in text #telling quiet  #no #silent  #personal  `  and .. name  not .. user  ssh
0.124  #telling file  #telling ignore #telling rules  #telling quiet  x0 =
0.126  #in parameter #take  *  choose
0.128  c  decode  no .. and  o
0.13  #first #identifier  #model #trigger  #secret #telling file  ^ image  and .. is  d  der  in .. the  this .. the  those  value of
0.134  #address #in text  #model  also
0.136  #before #thing  @  along
0.138  #address  0 .. 0
0.14  #consent #no  #in parameter #personal  chart  keep  que  t  x0  入
0.142  #model #then  des
0.144  tool
0.146  #give #then  #in text #obey  #secret #thing  to .. user
0.148  was  whatever
0.15  #give #known personal  #silent #user
0.152  here
0.156  #address #give  net
0.158  naq  under
0.16  #telling keep  i
0.162  ^ <
0.164  zu
0.166  our  prior  weather
0.168  find .. by
0.172  #every #identifier  #in parameter #secret
0.174  、
0.176  to be
0.178  #every #secret  return .. time
0.182  # 0  0 #  note
0.194  #in text #model
0.196  ^ x0
0.222  get weather
0.252  #in parameter #talk
0.352  eht
"""

CONTENTS: Final = """
-0.254  server
-0.238  #model #self
-0.226  #no #secret
-0.222  commit
-0.214  ^
-0.198  someth
-0.196  ^ we
-0.194  ignore
-0.19  " ignore  minut
-0.174  a
-0.172  data
-0.168  forward
-0.166  ^ agent
-0.164  http .. com  script
-0.16  least
-0.158  #rank #telling ignore
-0.156  type
-0.154  it .. to  it to  override  wie
-0.152  the agent
-0.15  #care  #form  #take  is the  sie
-0.148  user "
-0.146  says
-0.144  : `  credential  letter  team
-0.142  #please #secret  there  why  x0 :
-0.14  #duty #trigger  #no #please
-0.138  an  html
-0.136  ^ note  model  text .. a  the .. contain
-0.134  #form #telling ignore  #use  ^ ask  poison  read it  send .. to  x0 /
-0.132  #duty #user  ?  ^ add  com /  how
-0.13  "  asks .. the  io /  use
-0.128  #personal #self  question .. the  the assistant
-0.126  on .. and  red  sent  to .. to
-0.124  contain  docs  send  ssh
-0.122  previou  three  we
-0.12  #before #user  ignore previou  local  not  note :  npm  or
-0.118  #form #telling rules  image
-0.116  #harm #self  #no  a .. the  ask for  sobre  स
-0.114  #duty #no  #in arguments  0 .. read  hash  such
-0.112  * *  ^ the  ^ you  high  may
-0.11  #forced #trigger  #model #telling rules  ^ researcher  and this  only .. 0  。
-0.108  ^ assert  ai assistant  assert  bar  hr  if  the right  you .. assistant
-0.106  #personal #telling rules  #then #user  @ example  ^ def  a .. do  def  guard  world  you .. a
-0.104  " you  #care #thing  #no #not use  #not use  can  in  todo  “
-0.102  #before #use  certificate  date  friday  guide  injection  light  no .. of  را
-0.1  " it  #no #quoted  #take #telling rules  #telling ignore #trigger  block  earlier  example com  ignor  to .. a
-0.098  for a  id .. x0  nobody  node  the new  using  wrote  x0 [
-0.096  : "  < !  ^ la  dev  http .. lumenwork  it and  jobs  once  please .. this
-0.094  #about #telling rules  #model #thing  ^ only  agent  ask  one is  source  tell  the letter
-0.092  #office #telling prompt  ^ die  flag  man  prompt  the .. mail  untrust  valid  web
-0.09  #say #telling ignore  ^ and  ^ never  api key  character  el  horn example  in .. text  to .. that
-0.088  #self #user  #telling prompt #user  0  @ horn  ^ ssh  command  file .. 0  instruction "  mcp  parcel  researcher  text  the .. them  web page
-0.086  #obey #telling ignore  #office #self  #self #telling rules  #telling rules #user  ^ '  a un  agent .. and  all previou  attempt  before  fixed  github  is no  mail  sk  twice  used
-0.084  #give #telling reset  #telling file #telling prior  a .. http  going  it .. a  pytest  system .. 0  your .. and
-0.082  #office #telling rules  #please #telling ignore  : a  are .. the  as well  d  http .. sh  just  reach  system .. a  the .. before  vault  و
-0.08  #about #address  #bias  #give #open  #talk  ^ run  agent .. call  by a  id =  las .. en  password =  please .. your  前
-0.078  #give  #no #telling prior  #param  #telling keep #then  ' ignore  0 .. for  ^ expect  august  external  filter  google  hi  ignore .. and  lang  localhost  of 0  one  system prompt  to .. com  入
-0.076  #before #duty  #every #then  #form #silent  #model #talk  #no #not give  #not give  #say #thing  / bin  a .. assistant  forget  http .. 0  import  the .. within  行
-0.074  #consent #not give  #consent #take  #returns #use  #trigger  0 .. with  0 :  ^ budget  ^ instruction  asks  example .. x0  ignore the  latest  linux  or .. the  prompt injection  take  the bot  件
-0.072  #before  #before #thing  #no #take  #secret #silent  / etc  / img  / x0  ^ ne  be .. to  between  communiquez  die .. von  etc  etc /  it .. for  like  ne communiquez  newsletter  please .. 0  rotate  secret  sure .. the  to all  todo :  token .. token  user :  votre
-0.07  #give #no  #obey #telling rules  #quoted #telling ignore  / user  =  ^ curl  ^ hi  ^ track  ^ x0  a txt  a user  an .. the  anterior  bitte .. sie  can .. be  class  do .. to  e .. x0  example .. 0  not .. a  org .. 0  read the  talk  the .. instruction  the .. may  the .. need  this .. you  to .. as  unit  white .. a  written
-0.068  " system  #before #quoted  #discredit  #personal #use  #take #you  #talk #telling rules  / head  = 0  @ x0  ]  ^ example  ^ system  follow the  ha .. el  has approv  how .. you  iban  it's  log in  mir  order  recommend  replace  second  send .. the  setting  the .. after  the invoice  to .. it  you .. now
-0.066  " x0  #about #telling prompt  #forced #use  #no #whole  #office #open  0 .. admin  [ ]  ^ date  and .. a  and forward  and to  fail  group  has .. request  inform  is .. on  kind :  personal  took
-0.064  #before #obey  #no #personal  #obey #telling prior  #talk #telling prompt  0 .. 0  ^ apiversion  ^ kind  apiversion  apiversion :  don't .. the  id  messag  rule  show  test  told  un  x0 >
-0.062  #excuse  #returns #take  #self #talk  #talk #telling ignore  a .. to  are a  danach  dist  http .. github  if a  it .. it  it .. that  leiten  leiten sie  löschen  löschen sie  note .. 0  o /  prompt .. the  sie .. die  the key  user .. approv  you .. your
-0.06  " assistant  #before #identifier  #no #not harm  #not harm  #office #whole  #talk #thing  ' =  a .. a  all .. from  and 0  at once  break  def test  do .. this  eggs  expir  had  invalid  must .. to  org /  password :  redact  the .. confirm  the docs  x0 from  you must
-0.058  #before #consent  #discredit #trigger  #param #user  #take #telling prior  #talk #trigger  0 ]  0 x0  = http  ^ const  ^ инструкция  a .. in  attack  down  for  grep  jamai  letter .. the  office  one .. the  rs  the .. name  инструкция
-0.056  #discredit #harm  : bitte  >  @ localhost  agent .. a  allow  and .. of  call .. first  dolor  horn  in .. are  must  number .. 0  src  tell .. what  to .. or  user .. localhost  ya ha  »  人
-0.054  #about #telling file  #care #no  #no #others  #no #their  #no #user  #obey #self  #telling reset #thing  0 .. are  : send  ^ how  ^ please  assistant .. it  attacker  before .. commit  between .. and  creat  file :  ignoriere  ignoriere .. anweisungen  key  should  the .. have  the password  to .. on  was  👩
-0.052  #every #obey  #give #harm  #office #say  #returns #secret  #secret #telling prior  #thing #you  ^ si  ^ use  as .. i  cli  developer  do  env example  example "  fall  for .. in  indirect  logs  never  please don't  postgr .. localhost  public key  section  since  text .. the  the .. form  the previou  token .. 0  |  } ]  👨
-0.05  #about #you  #take #telling reset  #telling prior  : how  ^ c  ^ upgrade  add  also  am  and .. by  everyth  in .. page  instruccion  instruction  jwt  jwt .. x0  las instruccion  m  on .. 0  or .. to  sh  start  the .. asked  the .. ignore  ह  提
-0.048  " http  #about #consent  #discredit #please  #office #returns  / ?  / src  / www  0 |  ^ api  ^ ghcr  ^ name  ^ tool  don't  eva  ghcr  ghcr .. x0  ghcr io  head  integrity  integrity .. x0  often  parti  password "  permission  pg  project  stop  the  to .. call  tool .. and  track  version  von  www
-0.046  #about #obey  #forced #user  #identifier #trigger  #model #their  #model #you  ' you  ^ $  call the  forward the  h  http .. org  imag  image .. x0  in .. the  login .. example  metric  ops  tell .. the  the model  to .. before  you asked  you need
-0.044  #about #form  #rank  #self #take  0 .. to  ] }  ^ راهنمای  a .. page  an .. to  are .. assistant  between .. 0  between 0  chair  dear customer  e .. 0  end certificate  help  if .. you  look .. the  manager  right  send .. mail  svg  to .. prompt  well  what'  | |  راهنمای
-0.042  #before #personal  #form #say  #obey #telling reset  #please #telling prior  #silent #take  #telling prior #telling prompt  #telling rules #thing  ' or  / p  0 [  : thank  = <  ^ http  app  asks for  blog  by .. of  customer  cve  docker  e g  gmbh  ha  hello world  host  if the  me  product  prompt .. a  sie die  t :  the .. is  the .. told  token "  und .. sie  updat  us  w /  your .. key
-0.04  #not give #trigger  #please  / docs  <  ^ مرحبا  a .. message  and tell  anyth  by friday  chatbot  de passe  disregard .. and  don't tell  gateway  how to  mot  mot .. passe  mot de  over  please .. it  remov  report  support  the .. e  third parti  through the  url =  white  white text  you are  your password  «  مرحبا
-0.038  #before #open  #before #then  #every #use  #forced #you  #telling prior #you  : password  ] {  a .. it  ada  cent  double  for .. so  invoic  is not  lang =  statu  token  token .. in  } }
-0.036  #about #personal  #before #telling ignore  #every #whole  #forced #thing  #harm #please  #quoted #take  #secret #telling file  0 .. token  @ corp  ^ do  ^ rotate  a .. tell  a web  build  copy  cve .. 0  cve 0  docs /  http .. x0  if .. is  keep  must be  pin  search  your api
-0.034  " 0  #care #not give  #consent #you  #duty #then  / login  0 .. e  ^ begin  ^ docker  ^ import  ^ jwt  api .. http  before you  chat  class =  contractor  curl .. http  diff  example :  key .. the  known  markdown  remove  sum  switch  the .. user  the second  these  transfer .. 0  you .. to
-0.032  #about #use  #discredit #no  #every #lasting  #excuse #telling ignore  #form #telling reset  #not give #personal  #office #talk  #talk #you  #telling prior #whole  / png  [ {  ^ she  bitte  forward .. mail  image /  img /  in .. a  is .. you  object  otherwise  password .. password  recipe  ssh .. x0  subject :  such as  system .. you  tar  the .. should  told .. to
-0.03  #every #self  #give #obey  #model #telling reset  #not give #please  #not give #telling prior  #take #telling prompt  / app  : http  ^ src  ^ test  a .. as  a tool  can i  check  disregard  fingerprint .. x0  hidden  in this  mail .. example  not .. in  the .. previou  token =  was .. 0  म
-0.028  #ask #open  #every #telling ignore  #form #telling prior  #personal #quoted  #please #you  #their #use  / github  / localhost  ^ public  all the  asked for  assistant .. is  cv  git  have to  key .. api  localhost :  lunch  md  old  summary  with an  you .. for  you've  در
-0.026  #about #secret  #before #trigger  #divert #form  #excuse #telling harm  #talk #user  '  0 .. password  > <  ^ send  ^ subject  a .. with  agent .. the  begin certificate  connection  data .. x0  kind  migration  please .. and  self  sentence  tell .. to  through  to .. team  you  {
-0.024  #every #you  #give #you  #identifier #telling file  #personal #telling ignore  #telling ignore #thing  #telling prior #telling reset  #thing  ^ a  ^ as  ^ if  ^ set  ^ text  article  begin public  end public  in a  key =  log  ones  please .. my  reset  restart  screenshot  select  the contract  train  ts  window  with your  x0 .. and
-0.022  #duty #telling ignore  #harm  #identifier #secret  #not give #secret  #take #telling ignore  / test  0 .. eur  ^ select  config  explain  in x0  instruction .. the  instruction in  keys  order .. 0  out of  question  r  src /  table
-0.02  #every #telling reset  #form #self  #not say #silent  #quoted  0 .. it  0 .. x0  begin  com .. x0  con  eur  function  laptop  node .. 0  none  pass  said  the .. has  third  we .. a  within
-0.018  #care #secret  #please #say  0 .. g  @  bad  docs :  fund  id .. 0  id |  need  python  rate  replac  shall  the .. customer  the .. said  the old  und  until  usage  you .. an
-0.016  #about  #about #their  #excuse #thing  #say #telling rules  ' 0  : '  : 0  ^ fix  ^ in  after the  anyone  kernel  kernel .. 0  les  mail to  never .. the  password  side  tag  the .. be  the .. token  user  your .. by  👩 💻  💻
-0.014  #consent #office  #every #telling prompt  #give #telling ignore  #give #whole  #model #telling prior  #no #telling ignore  #talk #telling prior  ^ answer  ^ |  ai  can .. the  for .. 0  git .. 0  id x0  password .. the  process  text /  token :  x0 .. 0  x0 .. http
-0.012  #give #telling models  #give #user  #harm #you  #self  #take #talk  and a  api .. api  at .. 0  call .. the  for .. password  ms  the .. restart  the repository  to read  x0 x0  }
-0.01  " to  #every #model  #forced  #form #identifier  #give #personal  #no #telling rules  #returns #user  *  0 with  and .. your  api .. com  by  code .. the  data :  file  font  forward .. to  ignore .. instruction  person  pric  readme  run `  short  the .. which  want to  what is  your .. here
-0.008  #about #no  #about #self  #excuse #give  #forced #no  #no #not take  #not take  : [  = your  content  first .. the  it as  session  thank you  the .. the  the .. your  treat  up to  x0 .. x0
-0.006  #consent #then  #model #say  #take #thing  $ {  ^ assistant  and .. is  assistant .. the  at  hand  has .. the  helpful  page  reject  the .. for  the .. system
-0.004  #about #telling prior  #consent #trigger  #duty #you  #form #give  #model #office  #obey #quoted  #obey #take  #silent #you  and .. in  and .. one  ci  error :  install  it was  key .. key  link  rsa  serial  the .. a  were .. to
-0.002  #address #harm  #excuse #user  #not give #you  #whole  ^ error  ^ id  ^ read  be .. in  city  g  json  name  of .. is  on .. a  two  x0 0
0.002  #duty #give  #office  #quoted #you  #secret #user  ^ open  auth .. 0  authentication  die .. die  into  is .. the  leav  on a  order 0  work .. the  не
0.004  #every #telling rules  #no #talk  #say #telling prior  auth  bob  case  click  hello  the summary  to see  tom  we .. to  with a  you .. before
0.006  #give #telling prompt  ^ env  she  the .. been  the .. when  the number  user .. the  x0 "
0.008  #duty #telling rules  #form #no  #identifier #telling prior  #model #quoted  #no #trigger  0 .. in  < p  above  api  assistant  cookie  in .. to  p >  please  re  the .. by  the .. that  will
0.01  #office #please  #take #trigger  #telling file #telling ignore  address  and .. its  confirmation  could  database  fix  from 0  left  on .. to  x0 .. from
0.012  #address #no  #consent #secret  #excuse #quoted  #give #quoted  #silent #trigger  #take #use  #telling ignore  #telling new #telling prior  #then #whole  as  for the  four  http  pull  your
0.014  #consent #telling unasked  #divert #harm  #give #thing  #others #use  #personal #then  #telling prior #thing  #trigger #you  0 .. a  : in  ^ forget  all .. the  have .. to  is  it .. of  it .. the  it .. with  noth  out .. the  shop  the .. all  the .. on  to .. 0  with it
0.016  " statu  #before #give  #form #quoted  #give #then  #personal #user  : it  and .. you  and the  collect  from  os  registry  statu "  the user  up the  way  with .. of  work
0.018  #every #user  #give #use  #telling models #you  a .. 0  a .. and  a .. which  and .. are  e mail  en  evil example  mode  part  system :  the .. can  want .. to  you do
0.02  " and  #consent #say  #duty #form  #every #thing  #excuse #secret  #excuse #then  #identifier  #obey #thing  #telling models #telling rules  0 .. from  0 days  hotel  login '  message  number of  x0 .. the
0.022  " "  # 0  #form #personal  #harm #identifier  #identifier #telling marker  #please #trigger  #returns  offer  payment  skip  the .. open  to 0  to continue  who  your .. the  ~
0.024  #address #say  #consent #harm  #divert #personal  #harm #telling harm  #obey #you  #secret #telling ignore  #telling ignore #you  #telling role #telling rules  #then  #you  ^ security  ^ user  below  default  is .. a  rest  user /
0.026  #duty #not give  #excuse #you  #personal #secret  #telling file  #telling keep #user  #telling later #user  and .. them  are .. and  from .. to  hint  i'm  it by  of .. and  release  see  start .. 0  the .. must  ~ /
0.028  #before #self  #consent #thing  #duty #model  #model #telling ignore  #office #telling role  #talk #use  #their #user  #then #trigger  ^ don't  are .. you  i .. to  now  result :
0.03  #about #before  #about #give  #address #please  #duty #returns  #duty #telling prior  #model #open  #please #talk  answer  board  db password  has been  key .. x0  set  term  to the  user .. 0  you .. the
0.032  #address #obey  #address #office  #divert #thing  #duty #identifier  #harm #office  #no #telling role  #telling harm #telling prior  #telling marker #telling prompt  #telling others  0 .. and  backup  every  five  helper  machine  o  of  only  pull request  to
0.034  #address #silent  #before #form  #consent #duty  #excuse #personal  #form #you  #no #telling keep  #quoted #thing  #say #silent  #self #telling ignore  #take #their  ^ install  ahead  offer .. 0  part .. the  private  that  them  this .. it  with .. 0
0.036  !  #consent #self  #every  #personal  #secret #self  0 .. on  :  ^ result  an .. a  as .. and  c  faster  free  ghp  level  not .. the  the .. only  want  you .. that
0.038  #about #identifier  #address #their  #before #no  #duty #others  #every #harm  #give #silent  #identifier #quoted  #quoted #secret  #quoted #use  #telling reset #telling rules  /  / home  0 .. info  0 .. the  : for  ^ file  ^ return  book  dear  erp  euro  für  invoice 0  is .. and  it .. be  matter  memory  other  scan  the .. request  true  write  you .. asked
0.04  #give #take  #open  #personal #thing  #quoted #user  #secret #you  #self #telling role  0 .. out  0 0  ^ *  comment .. the  dinner  e  form  have  id "  is to  main  screen  the last  und .. die  within .. days
0.042  #about #divert  #consent #telling rules  #duty  #duty #harm  #no #office  #office #telling models  #silent #user  #telling prior #use  #telling prompt  #use #whole  ' and  / a  : $  : :  ai that  call  das  days  enabl  end  env  from .. on  move .. the  production  push  that it  the .. was  to .. in  too  total .. 0  user'
0.044  #consent #identifier  #form #please  #not say #user  #obey #office  #rank #say  #self #telling prior  #telling harm  #telling ignore #telling reset  ^ tell  are .. for  chang  content of  de .. la  el .. de  ok .. x0  please .. attach  please find  reader  share the  the .. link  the .. of  with .. and  your .. to
0.046  #address #trigger  #before #you  #every #no  #every #office  #form #their  #thing #trigger  0 $  0 '  0 and  after  and .. to  and do  coding agent  discount  example  has  http .. net  prod  repeat  repository  role =  the admin  then  two .. of  were asked  when
0.048  #address #duty  #before #telling rules  #give #talk  #model #user  #no #not say  #not say  #office #trigger  ^ after  ^ customer  ^ description  a .. from  access  assistant :  click here  client  des  do .. the  does  have .. it  p  send .. password  the follow  the user'  to .. this  word
0.05  #address #secret  #duty #telling models  #lasting  #model #no  #others #then  #self #telling unasked  #telling harm #telling rules  #telling prior #telling role  #telling reset #you  #telling rules #telling unasked  #then #use  / 0  ] :  away  been  encod  example org  into the  is .. in  my .. the  number .. the  of the  of this  please .. the  s  the .. database  thursday  total
0.052  #duty #personal  #give #telling new  #model #others  #no #telling models  #office #quoted  #others #take  #please #take  #self #telling prompt  / id  : when  and .. it  and .. no  coding  de la  export  for .. a  get the  left out  login .. password  present  task  the .. from  trust  u  with  x0 '
0.054  " id  #before #secret  #discredit #telling ignore  #every #excuse  #form #returns  #form #user  #give #returns  #harm #model  #harm #secret  #no #say  #office #personal  ' x0  0 .. name  connect  example .. png  here  info  of .. for  png  policy .. 0  sh `  site  sync  the .. list  trouble  within 0
0.056  #address #form  #consent #form  #discredit #office  #forced #quoted  #give #self  #no #you  #telling harm #telling ignore  #telling prior #telling title  #telling unasked  a .. this  administrator  any  application  at ten  in .. for  in .. name  internet  lumenwork  plan  request .. the  store  thank  with .. right  x0 .. start
0.058  #consent #model  #discredit #you  #excuse #their  #model #silent  #telling ignore #telling models  #telling ignore #user  $ 0  ^ with  a .. on  are 0  contact  durch  e .. a  full  get  in .. even  it  print  setup  sort  up  user .. it  view  went  x
0.06  #about #user  #consent #quoted  #give #model  #identifier #obey  #open #trigger  #rank #use  #telling new #you  / i  < /  ^ dear  api .. in  attach  example /  have a  meet  open  option  same  system .. now  tax  that .. was  to .. address
0.062  #  #address #telling file  #harm #telling ignore  #no #silent  #obey #use  #param #quoted  #telling prompt #you  = '  ^ kindly  ^ total  are .. with  display  each .. a  for .. this  invoice .. 0  kindly  so .. can  star  the .. me  the line  this .. to  time  tool  transfer  tunnel
0.064  #excuse #take  #no #telling harm  #quoted #self  #secret #telling rules  administrator has  an die  and  cat  cat ~  de  deletion  den .. der  http .. test  ignore all  job  ki  maintenance mode  move  of .. of  the .. new  this is  to finish  | sort
0.066  #address #self  #give #please  #office #telling marker  #telling ignore #telling prior  #telling marker #telling prior  ah  been .. with  call .. to  debug  detail .. the  door  each time  env .. to  in .. in  language model  mark .. as  open at  style =  that .. are  the .. want  today  à  à .. les
0.068  #every #silent  #give #identifier  #give #telling file  #harm #trigger  #no #telling unasked  #office #thing  #office #use  #please #thing  #telling new #thing  #telling prior #then  0 .. be  0 .. run  [ /  ^ access  and .. from  beim  business  consent  decode  does not  for .. x0  go .. the  list .. the  name "  t .. t  the .. payment  the owner  the ticket  to .. with
0.07  " :  #give #telling role  #harm #obey  #model #telling later  #no #then  #obey #say  #please #whole  #say #trigger  are .. by  for .. with  great  is .. it  is .. so  is out  les .. la  out  question :  review  t =  ticket .. 0  to .. of  x0 .. q  your next
0.072  #address #telling rules  #address #then  #before #telling file  #every #telling agreed  #every #telling prior  #quoted #trigger  #say #secret  #say #take  #telling ignore #telling prompt  / r  0 in  ^ could  and add  and print  for automat  of .. the  operator  su  support .. example  the .. agent  the question  total 0  yes
0.074  ! =  #consent #telling models  #give #their  #personal #their  #please #telling models  #rank #self  #telling keep  #telling new  0 .. per  : you  admin '  and post  as .. as  contributor  environment  get it  museum  of .. tool  on  read this  secret |  the .. account  the .. do  the .. line  the .. page  the rest  their  tmp  to .. help  your .. in
0.076  #address #take  #consent #excuse  #others  #secret #thing  #telling reset  #thing #use  ^ à  all .. instruction  card .. 0  eine  hinwei für  line  root .. 0  to http  toda las  und .. an  vom  x0 .. auth  x0 x  zugang  для  об  об этом  этом
0.078  #address #quoted  #every #say  #harm #quoted  #model #please  #personal #say  #please #user  #take #telling role  ^ maintainer  and run  archive  available  count  day  drop  end .. private  end openssh  execute  im  is .. to  llm  name .. price  png ?  previou instruction  proce  safety  the link  user .. to
0.08  #form #harm  #quoted #then  #then #thing  grow  http .. example  mail example  net /  page 0  role .. admin  six  style .. 0  the operator  ticket  will .. the  x0 |  こ
0.082  #consent #personal  #give #say  #harm #no  #office #telling title  #office #you  $ x0  0 .. request  0 from  : your  ^ ticket  im .. und  not .. any  policy  postfach  receiv  response  thank !  the .. this  the .. to  the way  transcript  w
0.084  #divert  #divert #give  #secret #use  #telling quiet  * /  ^ 0  ^ see  ` curl  asked to  is .. that  isn't  msg  pdf .. x0  place  son  the .. two  { "
0.086  #lasting #say  #model #telling quiet  #others #telling prior  asistente  avec  begin .. private  dear .. please  gets  ines  lo .. el  login  maintenance  php  repeat the  responde  test /  the calendar  this .. is
0.088  #consent #open  #divert #model  #not say #open  #telling prompt #telling rules  > you  ^ [  begin openssh  by .. the  offer 0  price  private key  software  them .. a  x0  x0 $
0.09  " name  #excuse #identifier  #personal #take  #please #telling rules  #say #you  #user  a comment  and .. out  due  on this  post  remark  so .. the  the .. isn't  the .. policy  this .. from  to you  toda
0.092  #consent #every  #consent #telling prior  #identifier #then  #no #open  #telling agreed #thing  0 .. la  = {  as .. the  error 0  for this  invoice  left .. the  login .. x0  lumenwork /  not .. about  supervisor  sur .. de  your .. a  | x0
0.094  #ask #their  #consent  #form #thing  #harm #take  #telling models #trigger  conversation  customer .. thank  example net  for .. agent  na  nach  next  para  reveal .. prompt  t  tell them  the .. password  the .. went  using the  when .. this
0.096  #address #before  #address #every  #model #secret  #take #user  #telling role #you  has agre  history  need the  please .. our  share  statu .. x0  user .. for  wallet  with .. in  zusammenfassung  на
0.098  #harm #thing  #telling file #thing  #telling models #telling prior  #telling models #user  #use #you  #whole #you  / *  as .. comment  assistant .. this  b  den  hour  move .. to  number  r ?  root .. x0  see .. the  smaller  stor  to my  very  vom 0  | system  и
0.1  #about #talk  #before #model  #harm #user  #model #telling file  ' '  @ mail  and .. x0  each  ends  later  model :  owner  partner  them to  x0 .. com
0.102  #every #telling later  #obey  ^ it  ^ {  a .. is  agent :  firewall  first  freitag  give  img  in .. next  is .. from  metadata  phone  please .. to  the .. 0  the .. in  the meet  this .. the  txt
0.104  #address #thing  #duty #use  #give #office  #identifier #office  #thing #user  brought  die .. der  evil  in the  its  reveal  state  tr  we can
0.106  #model #trigger  #model #use  ^ token  about it  admin  compte  key :  result  the date  trop
0.108  #address #excuse  #duty #office  #please #telling reset  $  and .. the  de .. du  ve  with the  you .. read
0.11  #before #say  #form #model  #no #use  #say  ' :  0 .. is  0 .. of  automat  de .. a  do so  l  line .. the  ok  step  ticket as
0.112  #telling title  ^ client  desc  it is  maintainer  notice  q  will .. on
0.114  ! x0  " ok  #address  #telling rules #whole  in your  ni  open .. 0  the .. are  the .. you  x0 .. to
0.116  #about #excuse  #address #use  and .. with  be .. on  der  on tuesday  top  x0 #
0.118  #duty #thing  / l  ^ before  ^ eine  grant  highlight  if .. admin  is a  openssh  openssh .. key  openssh private  reveal the  than
0.12  #address #talk  #office #telling prior  acme  feedback  you were
0.122  #model #obey  a .. de  der .. und  está  for .. the  mon  mon .. 0  sitzung  up .. the
0.124  #trigger #user  ^ hinwei  base  file .. public  finish  is .. by  that the  zur
0.126  #please #self  #telling agreed  bank .. in  empty  la .. du  list  request  that .. this  went well  有
0.128  accept  as "  client .. x0  dns  guest  please .. of  👍
0.13  #obey #then  #telling marker  0 euro  entry  the .. about  this  to be  token .. x0  verify  x0 and
0.132  #every #identifier  #model #rank  ^ entry  bank  de .. 0  end of  holiday  io
0.134  ok "  qui  upload  x0 =
0.136  #duty #take  #every #take  #form #take  #user #you  blue  que
0.138  #model #take  #model #then  install with  my
0.14  #telling role  tell .. it
0.142  #lasting #telling later  lo  requir  x0 t  à .. de
0.144  #identifier #model  #their  0 is  ^ for  agenda  it .. on  pdf  the .. as
0.146  #telling prior #user  the .. well
0.148  #address #personal  #consent #no  #self #whole  #telling rules  ^ <  ^ document  aux  on .. the  term :
0.15  ^ term  that .. the
0.152  #address #user  #every #secret  has .. to  note  the .. at
0.154  0 .. days  a .. of  body  make
0.156  este
0.158  #address #give  ^ offer  digital
0.16  hinwei  lo que  password .. x0  patient  seit
0.162  : x0
0.164  0 mg  comment  mg
0.166  #say #then  #say #use  0 "
0.17  #address #model  #harm #telling prior  agent .. this
0.172  #model #personal
0.174  so
0.176  #harm #use
0.186  e .. o  o .. e  root
0.192  #model #telling models
0.194  continue
0.198  #give #secret
0.2  #telling prior #telling rules
0.202  #identifier #thing  confirm
0.204  the .. tool
0.206  ^ ignore  ^ invoice
0.21  #telling later  net  ten
0.222  du
0.226  #telling models
0.232  exe  x0 .. example
0.292  #telling ignore #telling rules
0.318  #model
"""
